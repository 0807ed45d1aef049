#!/usr/bin/env python3
"""Writes gguf_golden.inc: for each GGUF block type a hash of what the `gguf` package (0.19.0, from PyPI; not needed to
run the tests) dequantises from blocks of pseudo-random bytes, which packed_test.cpp makes by the same rule.

    PYTHONPATH=folder-with-gguf test/kernels/matmul/gguf_golden.py > test/kernels/matmul/gguf_golden.inc
"""
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

ROWS, TERMS = 19, 512
# Type, and where its f16 fields begin: their exponents are kept small and finite.
TYPES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
         "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [], "NVFP4": []}


def random_bytes(count: int) -> np.ndarray:
    state, out = 12345, bytearray()
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) & (2**64 - 1)
        out.append(state >> 56)
    return np.frombuffer(bytes(out), dtype=np.uint8).copy()


def fnv1a(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & (2**64 - 1)
    return value


for name, halves in TYPES.items():
    kind = GGMLQuantizationType[name]
    terms, size = GGML_QUANT_SIZES[kind]
    blocks = random_bytes(ROWS * TERMS // terms * size).reshape(-1, size)
    for at in halves:
        blocks[:, at + 1] = (blocks[:, at + 1] & 0x83) | 0x28
    if name == "MXFP4":  # exponents near 1, and in every other block the smallest
        blocks[0::2, 0] = 110 + (blocks[0::2, 0] & 31)
        blocks[1::2, 0] = blocks[1::2, 0] & 3
    values = dequantize(blocks.reshape(ROWS, -1), kind).astype(np.float32) + np.float32(0)  # -0 becomes 0
    print(f'{{"{name.lower()}", {terms}, {size}, {{{", ".join(map(str, halves))}}}, {fnv1a(values.tobytes()):#x}}},')
