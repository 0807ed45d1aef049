"""Writes small GGUF files (version 3) for tests: values, tensors as raw bytes, and the few block types that are easily made
from random codes."""

import struct

import numpy as np

U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5
TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q8_0": 8, "BF16": 30}


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def value(item):
    """Python's types to GGUF's: int is u32, float f32, lists are of their first item's type; numpy's i32 stays."""
    if isinstance(item, bool):
        return BOOL, struct.pack("<?", item)
    if isinstance(item, np.int32):
        return I32, struct.pack("<i", item)
    if isinstance(item, int):
        return U32, struct.pack("<I", item)
    if isinstance(item, float):
        return F32, struct.pack("<f", item)
    if isinstance(item, (str, bytes)):
        return STRING, text(item)
    kind = value(item[0])[0]
    return ARRAY, struct.pack("<IQ", kind, len(item)) + b"".join(value(part)[1] for part in item)


def write(path, values, tensors):
    """`tensors` maps names to (type, dims outermost first, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    for key, item in values.items():
        kind, data = value(item)
        head += text(key) + struct.pack("<I", kind) + data
    offset, blobs = 0, []
    for name, (kind, dims, data) in tensors.items():
        head += text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *reversed(dims))
        head += struct.pack("<IQ", TYPES[kind], offset)
        padded = data + bytes(-len(data) % 32)
        offset += len(padded)
        blobs.append(padded)
    path.write_bytes(head + bytes(-len(head) % 32) + b"".join(blobs))


def randomMatrix(draw, kind, rows, columns, scale):
    """(bytes, the numbers they stand for in f32) of a matrix with about that standard deviation."""
    if kind in ("F32", "F16", "BF16"):
        plain = (draw.standard_normal((rows, columns)) * scale).astype(np.float32)
        if kind == "F32":
            return plain.tobytes(), plain
        if kind == "F16":
            return plain.astype(np.float16).tobytes(), plain.astype(np.float16).astype(np.float32)
        high = (plain.view(np.uint32) >> 16).astype(np.uint16)
        return high.tobytes(), (high.astype(np.uint32) << 16).view(np.float32)
    blocks = columns // 32
    d = (scale / (74 if kind == "Q8_0" else 4.6) * draw.uniform(0.5, 1.5, (rows, blocks, 1))).astype(np.float16)
    if kind == "Q8_0":
        codes = draw.integers(-127, 128, (rows, blocks, 32), np.int8)
        data = np.concatenate([d.view(np.uint8), codes.view(np.uint8)], axis=2)
    else:
        codes = draw.integers(0, 16, (rows, blocks, 32), np.uint8)
        data = np.concatenate([d.view(np.uint8), codes[..., :16] | codes[..., 16:] << 4], axis=2)
        codes = codes.astype(np.int8) - 8
    return data.tobytes(), (d.astype(np.float32) * codes.astype(np.float32)).reshape(rows, columns)
