#!/usr/bin/env python3
"""Writes gguf_golden.inc: for each GGUF block type a hash of what ggml (the library of llama-cpp-python 0.3.36; not needed to
run the tests) dequantises from blocks of pseudo-random bytes, which packed_test.cpp makes by the same rule.

    test/kernels/matmul/gguf_golden.py libggml-base.so > test/kernels/matmul/gguf_golden.inc
"""
import ctypes
import sys

import numpy as np

ROWS, TERMS = 19, 512
# Type: terms and bytes of a block, and where its f16 fields begin: their exponents are kept small and finite.
TYPES = {"q4_0": (32, 18, [0]), "q4_1": (32, 20, [0, 2]), "q5_0": (32, 22, [0]), "q5_1": (32, 24, [0, 2]), "q8_0": (32, 34, [0]),
         "q2_K": (256, 84, [80, 82]), "q3_K": (256, 110, [108]), "q4_K": (256, 144, [0, 2]), "q5_K": (256, 176, [0, 2]),
         "q6_K": (256, 210, [208]), "iq4_nl": (32, 18, [0]), "iq4_xs": (256, 136, [0]), "iq1_s": (256, 50, [0]),
         "iq1_m": (256, 56, []), "iq2_xxs": (256, 66, [0]), "iq2_xs": (256, 74, [0]), "iq2_s": (256, 82, [0]),
         "iq3_xxs": (256, 98, [0]), "iq3_s": (256, 110, [0]), "tq1_0": (256, 54, [52]), "tq2_0": (256, 66, [64]),
         "q1_0": (128, 18, [0]), "q2_0": (64, 18, [0]), "mxfp4": (32, 17, []), "nvfp4": (64, 36, [])}


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


library = ctypes.CDLL(sys.argv[1])
for name, (terms, size, halves) in TYPES.items():
    blocks = random_bytes(ROWS * TERMS // terms * size).reshape(-1, size)
    for at in halves:
        blocks[:, at + 1] = (blocks[:, at + 1] & 0x83) | 0x28
    if name == "iq1_m":  # the exponent is spread over two words
        blocks[:, 53] = (blocks[:, 53] & 0x0F) | 0x80
        blocks[:, 55] = (blocks[:, 55] & 0x0F) | 0x20
    if name == "mxfp4":  # exponents near 1, and in every other block the smallest
        blocks[0::2, 0] = 110 + (blocks[0::2, 0] & 31)
        blocks[1::2, 0] = blocks[1::2, 0] & 3
    values = np.empty(ROWS * TERMS, np.float32)
    pointer = lambda array: array.ctypes.data_as(ctypes.c_void_p)
    getattr(library, f"dequantize_row_{name}")(pointer(blocks), pointer(values), ctypes.c_int64(values.size))
    values += np.float32(0)  # -0 becomes 0
    print(f'{{"{name.lower()}", {terms}, {size}, {{{", ".join(map(str, halves))}}}, {fnv1a(values.tobytes()):#x}}},')
