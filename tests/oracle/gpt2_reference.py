#!/usr/bin/env python3
"""The oracle of the engine's parity test: a tiny GPT-2 in plain PyTorch, and what it computes, as gpt2_tiny.safetensors.

Everything is computed in float64 from float32 inputs, so that the distance of the engine's float32 results from these figures is
the engine's own rounding and not the sum of two. Results are stored as float32 (rounding 6e-8, two orders below the tolerance of
1e-5); losses, norms and learning rates as float64.

The one dependency is PyTorch 1.13 or later, without a GPU. See README.md beside this file for how to run it.
"""

import json
import math
import pathlib
import random
import struct

import torch

SEED = 1234
LAYERS, HIDDEN, HEADS, VOCAB, CONTEXT = 2, 32, 4, 61, 16
BATCH, STEPS = 4, 10
EPS_NORM = 1e-5
LEARNING_RATE, MIN_LR_RATIO, WARMUP_STEPS = 3e-3, 0.1, 3
BETA1, BETA2, EPS_ADAM, WEIGHT_DECAY = 0.9, 0.95, 1e-8, 0.1
CLIP_GRAD_NORM = 1.5  # below the norm of some steps and above that of others
IGNORED = -1


def make_weights(rng):
    """Muster's logical names (common/plan/model_shape.h) to float32-representable float64 tensors, linears as (out, in).

    Biases and norm weights are drawn too, rather than 0 and 1, so that a mistake in either shows.
    """

    def normal(shape, std, mean=0.0):
        count = math.prod(shape)
        values = torch.tensor([rng.gauss(mean, std) for _ in range(count)], dtype=torch.float32)
        return values.reshape(shape).double().requires_grad_(True)

    weights = {
        "embedding.token.weight": normal((VOCAB, HIDDEN), 0.15),
        "embedding.position.weight": normal((CONTEXT, HIDDEN), 0.1),
    }

    def linear(name, outputs, inputs):
        weights[f"{name}.weight"] = normal((outputs, inputs), 0.15)
        weights[f"{name}.bias"] = normal((outputs,), 0.1)

    def norm(name):
        weights[f"{name}.weight"] = normal((HIDDEN,), 0.1, mean=1.0)
        weights[f"{name}.bias"] = normal((HIDDEN,), 0.1)

    for layer in range(LAYERS):
        norm(f"layer.{layer}.attention.norm")
        linear(f"layer.{layer}.attention.qkv", 3 * HIDDEN, HIDDEN)
        linear(f"layer.{layer}.attention.projection", HIDDEN, HIDDEN)
        norm(f"layer.{layer}.ffn.norm")
        linear(f"layer.{layer}.ffn.up", 4 * HIDDEN, HIDDEN)
        linear(f"layer.{layer}.ffn.down", HIDDEN, 4 * HIDDEN)
    norm("head.norm")
    return weights


def make_batches(rng):
    """tokens and targets, each (STEPS, BATCH, CONTEXT): targets are the next token, with a different number ignored in each batch."""
    tokens, targets = [], []
    for step in range(STEPS):
        for row in range(BATCH):
            # Every other token is a function of the one before, so that there is something to learn.
            line = [rng.randrange(VOCAB)]
            while len(line) < CONTEXT + 1:
                line.append((line[-1] * 7 + 3) % VOCAB if len(line) % 2 else rng.randrange(VOCAB))
            ignored = set(rng.sample(range(CONTEXT), (step + row) % 4))
            tokens.append(line[:-1])
            targets.append([IGNORED if i in ignored else token for i, token in enumerate(line[1:])])
    shape = (STEPS, BATCH, CONTEXT)
    return torch.tensor(tokens).reshape(shape), torch.tensor(targets).reshape(shape)


def layer_norm(x, weights, name):
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + EPS_NORM) * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def linear(x, weights, name):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def gelu(x):
    """The tanh approximation that GPT-2 uses."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def attention(x, weights, name):
    batch, sequence, _ = x.shape
    heads = linear(x, weights, f"{name}.qkv").reshape(batch, sequence, 3, HEADS, HIDDEN // HEADS)
    q, k, v = heads.permute(2, 0, 3, 1, 4)  # each (batch, heads, sequence, head_dim)
    scores = q @ k.transpose(-2, -1) / math.sqrt(HIDDEN // HEADS)
    causal = torch.ones(sequence, sequence, dtype=torch.bool).tril()
    probabilities = torch.softmax(scores.masked_fill(~causal, -math.inf), dim=-1)
    out = (probabilities @ v).permute(0, 2, 1, 3).reshape(batch, sequence, HIDDEN)
    return linear(out, weights, f"{name}.projection")


def loss_of(weights, tokens, targets):
    """Mean cross entropy in nats over the positions that count."""
    x = weights["embedding.token.weight"][tokens] + weights["embedding.position.weight"][: tokens.shape[1]]
    for layer in range(LAYERS):
        name = f"layer.{layer}"
        x = x + attention(layer_norm(x, weights, f"{name}.attention.norm"), weights, f"{name}.attention")
        up = linear(layer_norm(x, weights, f"{name}.ffn.norm"), weights, f"{name}.ffn.up")
        x = x + linear(gelu(up), weights, f"{name}.ffn.down")
    logits = layer_norm(x, weights, "head.norm") @ weights["embedding.token.weight"].T
    return torch.nn.functional.cross_entropy(logits.reshape(-1, VOCAB), targets.reshape(-1), ignore_index=IGNORED)


def learning_rate(step):
    """Linear warm-up, then a cosine; `step` counts from 0."""
    if step < WARMUP_STEPS:
        return LEARNING_RATE * (step + 1) / WARMUP_STEPS
    progress = (step - WARMUP_STEPS) / (STEPS - WARMUP_STEPS)
    return LEARNING_RATE * (MIN_LR_RATIO + (1 - MIN_LR_RATIO) * 0.5 * (1 + math.cos(math.pi * progress)))


def write_safetensors(path, tensors, metadata):
    """tensors: name -> (dtype name, torch tensor). The widest types first, so that everything is aligned."""
    formats = {"F64": "d", "F32": "f", "I32": "i"}
    header, body = {"__metadata__": metadata}, bytearray()
    for name, (dtype, tensor) in sorted(tensors.items(), key=lambda item: item[1][0] != "F64"):
        values = tensor.detach().reshape(-1).tolist()
        begin = len(body)
        body += struct.pack(f"<{len(values)}{formats[dtype]}", *values)
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [begin, len(body)]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def main():
    torch.set_num_threads(1)
    rng = random.Random(SEED)
    weights = make_weights(rng)
    tokens, targets = make_batches(rng)
    tensors = {"tokens": ("I32", tokens), "targets": ("I32", targets)}
    for name, weight in weights.items():
        tensors[f"weight/{name}"] = ("F32", weight.clone())

    loss = loss_of(weights, tokens[0], targets[0])
    loss.backward()
    tensors["loss"] = ("F64", loss.clone().reshape(1))
    for name, weight in weights.items():
        tensors[f"gradient/{name}"] = ("F32", weight.grad.clone())

    decayed = [weight for weight in weights.values() if weight.dim() == 2]
    others = [weight for weight in weights.values() if weight.dim() != 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}],
        lr=LEARNING_RATE, betas=(BETA1, BETA2), eps=EPS_ADAM)
    losses, norms, rates = [], [], []
    for step in range(STEPS):
        rates.append(learning_rate(step))
        for group in optimizer.param_groups:
            group["lr"] = rates[-1]
        optimizer.zero_grad()
        loss = loss_of(weights, tokens[step], targets[step])
        loss.backward()
        losses.append(loss.item())
        norms.append(torch.nn.utils.clip_grad_norm_(list(weights.values()), CLIP_GRAD_NORM).item())
        optimizer.step()
        print(f"step {step}  loss {losses[-1]:.6f}  gradient norm {norms[-1]:.4f}  lr {rates[-1]:.6f}")

    for name, values in (("losses", losses), ("gradient_norms", norms), ("learning_rates", rates)):
        tensors[name] = ("F64", torch.tensor(values, dtype=torch.float64))
    for name, weight in weights.items():
        tensors[f"final/{name}"] = ("F32", weight)

    metadata = {
        "family": "gpt2", "layers": LAYERS, "hidden": HIDDEN, "heads": HEADS, "vocab": VOCAB, "context": CONTEXT,
        "batch": BATCH, "steps": STEPS, "norm_eps": EPS_NORM, "lr": LEARNING_RATE, "min_lr_ratio": MIN_LR_RATIO,
        "warmup_steps": WARMUP_STEPS, "beta1": BETA1, "beta2": BETA2, "eps": EPS_ADAM, "weight_decay": WEIGHT_DECAY,
        "clip_grad_norm": CLIP_GRAD_NORM, "seed": SEED, "pytorch": torch.__version__,
    }
    path = pathlib.Path(__file__).with_name("gpt2_tiny.safetensors")
    write_safetensors(path, tensors, {key: str(value) for key, value in metadata.items()})
    print(f"wrote {path.name}, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
