"""What the oracles of the engine's parity tests share: a tiny decoder-only transformer of a family in plain PyTorch, and what it
computes, as a safetensors file.

Everything is computed in float64 from float32 inputs, so that the distance of the engine's float32 results from these figures is
the engine's own rounding and not the sum of two. Results are stored as float32 (rounding 6e-8, two orders below the tolerance of
1e-5); losses, norms and learning rates as float64.

The one dependency is PyTorch 1.13 or later, without a GPU. See README.md beside this file for how to run it.
"""

import dataclasses
import json
import math
import pathlib
import random
import struct

import torch

SEED = 1234
BATCH, STEPS = 4, 10
LEARNING_RATE, MIN_LR_RATIO, WARMUP_STEPS = 3e-3, 0.1, 3
BETA1, BETA2, EPS_ADAM, WEIGHT_DECAY = 0.9, 0.95, 1e-8, 0.1
CLIP_GRAD_NORM = 1.5  # below the norm of some steps and above that of others
IGNORED = -1


@dataclasses.dataclass(frozen=True)
class Shape:
    """A model; the defaults are those of the tiny GPT-2."""

    family: str = "gpt2"
    layers: int = 2
    hidden: int = 32
    heads: int = 4
    kv_heads: int = 4
    ffn: int = 128
    vocab: int = 61
    context: int = 16
    tied: bool = True
    qkv_bias: bool = True
    norm_eps: float = 1e-5
    rope_base: float = 10000.0

    @property
    def head_dim(self):
        return self.hidden // self.heads

    @property
    def gpt2(self):
        return self.family == "gpt2"


def make_weights(shape, rng):
    """Muster's logical names (common/plan/model_shape.h) to float32-representable float64 tensors, linears as (out, in).

    Biases and norm weights are drawn too, rather than 0 and 1, so that a mistake in either shows.
    """
    weights = {}

    def normal(name, dims, std, mean=0.0):
        values = torch.tensor([rng.gauss(mean, std) for _ in range(math.prod(dims))], dtype=torch.float32)
        weights[name] = values.reshape(dims).double().requires_grad_(True)

    def linear(name, outputs, inputs, bias):
        normal(f"{name}.weight", (outputs, inputs), 0.15)
        if bias:
            normal(f"{name}.bias", (outputs,), 0.1)

    def norm(name):
        normal(f"{name}.weight", (shape.hidden,), 0.1, mean=1.0)
        if shape.gpt2:
            normal(f"{name}.bias", (shape.hidden,), 0.1)

    normal("embedding.token.weight", (shape.vocab, shape.hidden), 0.15)
    if shape.gpt2:
        normal("embedding.position.weight", (shape.context, shape.hidden), 0.1)
    for layer in range(shape.layers):
        name = f"layer.{layer}"
        norm(f"{name}.attention.norm")
        linear(f"{name}.attention.qkv", shape.hidden + 2 * shape.kv_heads * shape.head_dim, shape.hidden, shape.qkv_bias)
        linear(f"{name}.attention.projection", shape.hidden, shape.hidden, shape.gpt2)
        norm(f"{name}.ffn.norm")
        if shape.gpt2:
            linear(f"{name}.ffn.up", shape.ffn, shape.hidden, True)
        else:
            linear(f"{name}.ffn.gate_up", 2 * shape.ffn, shape.hidden, False)
        linear(f"{name}.ffn.down", shape.hidden, shape.ffn, shape.gpt2)
    norm("head.norm")
    if not shape.tied:
        linear("head", shape.vocab, shape.hidden, False)
    return weights


def make_batches(shape, rng):
    """tokens and targets, each (STEPS, BATCH, context): targets are the next token, with a different number ignored in each batch."""
    tokens, targets = [], []
    for step in range(STEPS):
        for row in range(BATCH):
            # Every other token is a function of the one before, so that there is something to learn.
            line = [rng.randrange(shape.vocab)]
            while len(line) < shape.context + 1:
                line.append((line[-1] * 7 + 3) % shape.vocab if len(line) % 2 else rng.randrange(shape.vocab))
            ignored = set(rng.sample(range(shape.context), (step + row) % 4))
            tokens.append(line[:-1])
            targets.append([IGNORED if i in ignored else token for i, token in enumerate(line[1:])])
    dims = (STEPS, BATCH, shape.context)
    return torch.tensor(tokens).reshape(dims), torch.tensor(targets).reshape(dims)


def norm(shape, x, weights, name):
    """LayerNorm; in LLaMA RMSNorm (Zhang and Sennrich 2019)."""
    if shape.gpt2:
        x = x - x.mean(dim=-1, keepdim=True)
    out = x / torch.sqrt((x**2).mean(dim=-1, keepdim=True) + shape.norm_eps) * weights[f"{name}.weight"]
    return out + weights[f"{name}.bias"] if shape.gpt2 else out


def linear(x, weights, name):
    out = x @ weights[f"{name}.weight"].T
    return out + weights[f"{name}.bias"] if f"{name}.bias" in weights else out


def gelu(x):
    """The tanh approximation that GPT-2 uses."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def turned(shape, x):
    """Rotary positions in the rotate-half layout of transformers' LlamaModel; x (batch, heads, sequence, head_dim)."""
    sequence, width = x.shape[-2:]
    frequencies = shape.rope_base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.arange(sequence, dtype=torch.float64)[:, None] * frequencies
    cosines, sines = torch.cat([angles.cos()] * 2, dim=-1), torch.cat([angles.sin()] * 2, dim=-1)
    halves = torch.cat([-x[..., width // 2:], x[..., : width // 2]], dim=-1)
    return x * cosines + halves * sines


def attention(shape, x, weights, name):
    batch, sequence, _ = x.shape
    widths = [heads * shape.head_dim for heads in (shape.heads, shape.kv_heads, shape.kv_heads)]
    parts = linear(x, weights, f"{name}.qkv").split(widths, dim=-1)
    q, k, v = (part.reshape(batch, sequence, -1, shape.head_dim).transpose(1, 2) for part in parts)
    if not shape.gpt2:
        q, k = turned(shape, q), turned(shape, k)
    k, v = (part.repeat_interleave(shape.heads // shape.kv_heads, dim=1) for part in (k, v))
    scores = q @ k.transpose(-2, -1) / math.sqrt(shape.head_dim)
    causal = torch.ones(sequence, sequence, dtype=torch.bool).tril()
    probabilities = torch.softmax(scores.masked_fill(~causal, -math.inf), dim=-1)
    out = (probabilities @ v).transpose(1, 2).reshape(batch, sequence, shape.hidden)
    return linear(out, weights, f"{name}.projection")


def feed_forward(shape, x, weights, name):
    if shape.gpt2:
        return linear(gelu(linear(x, weights, f"{name}.up")), weights, f"{name}.down")
    gate, up = linear(x, weights, f"{name}.gate_up").chunk(2, dim=-1)
    return linear(torch.nn.functional.silu(gate) * up, weights, f"{name}.down")


def loss_of(shape, weights, tokens, targets):
    """Mean cross entropy in nats over the positions that count."""
    x = weights["embedding.token.weight"][tokens]
    if shape.gpt2:
        x = x + weights["embedding.position.weight"][: tokens.shape[1]]
    for layer in range(shape.layers):
        name = f"layer.{layer}"
        x = x + attention(shape, norm(shape, x, weights, f"{name}.attention.norm"), weights, f"{name}.attention")
        x = x + feed_forward(shape, norm(shape, x, weights, f"{name}.ffn.norm"), weights, f"{name}.ffn")
    head = weights["embedding.token.weight" if shape.tied else "head.weight"]
    logits = norm(shape, x, weights, "head.norm") @ head.T
    return torch.nn.functional.cross_entropy(logits.reshape(-1, shape.vocab), targets.reshape(-1), ignore_index=IGNORED)


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


def train(shape, weights, tokens, targets):
    """Ten steps of AdamW; what each did, by name."""
    optimizer = torch.optim.AdamW(
        [{"params": [w for w in weights.values() if w.dim() == 2], "weight_decay": WEIGHT_DECAY},
         {"params": [w for w in weights.values() if w.dim() != 2], "weight_decay": 0.0}],
        lr=LEARNING_RATE, betas=(BETA1, BETA2), eps=EPS_ADAM)
    figures = {"losses": [], "gradient_norms": [], "learning_rates": []}
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        optimizer.zero_grad()
        loss = loss_of(shape, weights, tokens[step], targets[step])
        loss.backward()
        gradient_norm = torch.nn.utils.clip_grad_norm_(list(weights.values()), CLIP_GRAD_NORM).item()
        optimizer.step()
        for values, value in zip(figures.values(), (loss.item(), gradient_norm, learning_rate(step))):
            values.append(value)
        print(f"step {step}  loss {loss.item():.6f}  gradient norm {gradient_norm:.4f}  lr {learning_rate(step):.6f}")
    return figures


def write_oracle(file_name, shape):
    """Computes everything about `shape` and writes it beside this file."""
    torch.set_num_threads(1)
    rng = random.Random(SEED)
    weights = make_weights(shape, rng)
    tokens, targets = make_batches(shape, rng)
    tensors = {"tokens": ("I32", tokens), "targets": ("I32", targets)}
    for name, weight in weights.items():
        tensors[f"weight/{name}"] = ("F32", weight.clone())

    loss = loss_of(shape, weights, tokens[0], targets[0])
    loss.backward()
    tensors["loss"] = ("F64", loss.clone().reshape(1))
    for name, weight in weights.items():
        tensors[f"gradient/{name}"] = ("F32", weight.grad.clone())

    for name, values in train(shape, weights, tokens, targets).items():
        tensors[name] = ("F64", torch.tensor(values, dtype=torch.float64))
    for name, weight in weights.items():
        tensors[f"final/{name}"] = ("F32", weight)

    metadata = dataclasses.asdict(shape) | {
        "batch": BATCH, "steps": STEPS, "lr": LEARNING_RATE, "min_lr_ratio": MIN_LR_RATIO, "warmup_steps": WARMUP_STEPS,
        "beta1": BETA1, "beta2": BETA2, "eps": EPS_ADAM, "weight_decay": WEIGHT_DECAY, "clip_grad_norm": CLIP_GRAD_NORM,
        "seed": SEED, "pytorch": torch.__version__,
    }
    path = pathlib.Path(__file__).with_name(file_name)
    write_safetensors(path, tensors, {key: str(int(value)) if isinstance(value, bool) else str(value)
                                      for key, value in metadata.items()})
    print(f"wrote {path.name}, {path.stat().st_size} bytes")
