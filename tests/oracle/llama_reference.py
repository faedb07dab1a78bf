#!/usr/bin/env python3
"""The oracles of the LLaMA family. What they compute, and from what, is in reference.py.

llama_tiny.safetensors: grouped queries, a head of its own. qwen2_tiny.safetensors: as Qwen2, biases on query, key and value, a tied
head, and another eps and base of the rotary positions than the defaults. The base is so small that every component turns within the 16
positions: the gradient of a key bias that does not turn is zero, and AdamW would take its rounding for a direction.
"""

from reference import Shape, write_oracle

LLAMA = Shape(family="llama", heads=4, kv_heads=2, ffn=40, tied=False, qkv_bias=False)
QWEN2 = Shape(family="llama", heads=4, kv_heads=1, ffn=40, tied=True, qkv_bias=True, norm_eps=1e-6, rope_base=100.0)

if __name__ == "__main__":
    write_oracle("llama_tiny.safetensors", LLAMA)
    write_oracle("qwen2_tiny.safetensors", QWEN2)
