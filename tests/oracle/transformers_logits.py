#!/usr/bin/env python3
"""What Hugging Face's transformers computes of an exported directory: the check of `muster export`.

    python3 tests/oracle/transformers_logits.py DIR...              says how each loads, and its largest logit
    python3 tests/oracle/transformers_logits.py DIR... -o FILE      writes tokens and logits of each as JSON: the golden file
    python3 tests/oracle/transformers_logits.py DIR --self-check    writes DIR/muster_selfcheck.json from what it computes

Needs torch and transformers, without a GPU. README.md beside this file says what the tests make of the golden file.
"""

import argparse
import json
import pathlib

import torch
import transformers

TOKENS = 12
# Finer than the tolerance of 1e-4 by an order of magnitude.
DECIMALS = 6


def tokens_of(vocab, count):
    """Spread over the vocabulary by a fixed rule."""
    return [(7 + 17 * i + 3 * i * i) % vocab for i in range(count)]


def logits_of(directory):
    """(tokens, logits (tokens, vocab) float64) of the model in a directory, computed in float32 as it would be used."""
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    for what in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        if info.get(what):
            raise SystemExit(f"{directory}: {what}: {info[what]}")
    model.eval()
    tokens = tokens_of(model.config.vocab_size, min(TOKENS, model.config.max_position_embeddings))
    with torch.no_grad():
        return tokens, model(torch.tensor([tokens])).logits[0].double()


def self_check(tokens, logits):
    log_probabilities = torch.log_softmax(logits, dim=-1)
    return {
        "format_version": 1,
        "computed_by": f"transformers {transformers.__version__}",
        "tokens": tokens,
        "log_probabilities": [log_probabilities[i, tokens[i + 1]].item() for i in range(len(tokens) - 1)],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", type=pathlib.Path, metavar="DIR")
    parser.add_argument("-o", "--output", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--self-check", action="store_true")
    arguments = parser.parse_args()
    golden = {}
    for directory in arguments.directories:
        tokens, logits = logits_of(directory)
        print(f"{directory}: {len(tokens)} tokens, largest logit {logits.max().item():.4f}, "
              f"at the last position token {logits[-1].argmax().item()}")
        golden[directory.name] = {
            "tokens": tokens,
            "logits": [[round(value, DECIMALS) for value in row] for row in logits.tolist()],
        }
        if arguments.self_check:
            (directory / "muster_selfcheck.json").write_text(json.dumps(self_check(tokens, logits), indent=1) + "\n")
    if arguments.output:
        rows = [f'"{name}": {json.dumps(entry)}' for name, entry in golden.items()]
        arguments.output.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
