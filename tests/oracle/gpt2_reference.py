#!/usr/bin/env python3
"""The oracle of GPT-2: gpt2_tiny.safetensors. What it computes, and from what, is in reference.py."""

from reference import Shape, write_oracle

if __name__ == "__main__":
    write_oracle("gpt2_tiny.safetensors", Shape())
