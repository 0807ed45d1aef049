"""Quantisation, sub-byte types, numeric range."""

import ml_dtypes
import numpy as np
from onnx import TensorProto

from ..questions import MS, Question, f32, normal, op
from .cases import case


@case
def quantize_f16_ort18576():
    x = np.array([0.0500183, -0.0500183], np.float16)
    return Question(op("QuantizeLinear", "x s z"), {"x": x, "s": np.array(0.0999756, np.float16), "z": np.array(0, np.int8)},
                    {"y": np.array([1, -1], np.int8)})


def dynamicQuantize(x, y, scale, zero):
    return Question(op("DynamicQuantizeLinear", "x", "y s z"), {"x": x}, {"y": np.array(y, np.uint8), "s": np.array(scale, np.float32), "z": np.array(zero, np.uint8)})


@case
def dynamic_quantize_tract2672():
    return dynamicQuantize(f32(-127, 128, 0.5), [0, 255, 127], 1, 127)


@case
def dynamic_quantize_tie_tract2672():
    return dynamicQuantize(f32(-253, 257), [0, 254], 2, 126)


@case
def qlinear_conv_ort11883():
    rng = np.random.default_rng(24)
    x, w = rng.integers(0, 256, (1, 3, 5, 5)).astype(np.uint8), rng.integers(-128, 128, (4, 3, 1, 1)).astype(np.int8)
    bias = rng.integers(-500, 500, 4).astype(np.int32)
    total = np.einsum("oc,bchw->bohw", w[:, :, 0, 0].astype(np.int64), x.astype(np.int64) - 120) + bias[:, None, None]
    factor = np.float32(np.float32(0.02) * np.float32(0.03)) / np.float32(0.5)
    want = np.clip(np.rint(total.astype(np.float32) * np.float32(factor)) + 7, 0, 255).astype(np.uint8)
    node = op("QLinearConv", "x xs xz w ws wz ys yz bias")
    feeds = {"x": x, "xs": f32(0.02)[0], "xz": np.uint8(120), "w": w, "ws": f32(0.03)[0], "wz": np.int8(0), "ys": f32(0.5)[0], "yz": np.uint8(7), "bias": bias}
    return Question(node, {k: np.asarray(v) for k, v in feeds.items()}, {"y": want}, constants=["w", "bias", "xs", "xz", "ws", "wz", "ys", "yz"])


@case
def matmul_nbits_large_blocks_ort28551():
    k, n, block = 2048, 4, 512
    b = np.full((n, k // block, block // 2), 0x22, np.uint8)
    feeds = {"a": np.ones((1, k), np.float32), "b": b, "s": np.full(n * (k // block), 0.5, np.float32), "z": np.full(n * 2, 0x33, np.uint8)}
    return Question(op("MatMulNBits", "a b s z", domain=MS, K=k, N=n, bits=4, block_size=block), feeds, {"y": np.full((1, n), -1024, np.float32)}, 1e-3,
                    constants=["b", "s", "z"], either=True)


@case
def dequantize_int4_blocks_before_matmul_onnxsim749():
    rng = np.random.default_rng(25)
    w, s, x = rng.integers(-8, 8, (32, 6)).astype(ml_dtypes.int4), np.abs(normal(26, 2, 6)) + 0.1, normal(27, 3, 32)
    wide = w.astype(np.float64) * np.repeat(s, 16, axis=0)
    nodes = [op("DequantizeLinear", "w s", "d", axis=0, block_size=16), op("MatMul", "x d")]
    return Question(nodes, {"x": x, "w": w, "s": s}, {"y": (x @ wide).astype(np.float32)}, 1e-5, constants=["w", "s"])


@case
def odd_int4_counts_openvino31006():
    w = np.arange(-7, 8).astype(ml_dtypes.int4).reshape(3, 5)
    return Question(op("Cast", "w", to=TensorProto.FLOAT), {"w": w}, {"y": w.astype(np.float32)}, constants=["w"])




@case
def skip_norm_of_large_f16_ort29034():
    x = (1000 * normal(28, 2, 8) + 9000).astype(np.float16)
    g, zero = np.ones(8, np.float16), np.zeros((2, 8), np.float16)
    want = x.astype(np.float64) / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-5)
    return Question(op("SkipSimplifiedLayerNormalization", "x skip g", domain=MS, epsilon=1e-5), {"x": x, "skip": zero, "g": g}, {"y": want.astype(np.float16)}, 1e-3)


@case
def layer_norm_of_equal_values_ort21935():
    x, b = np.full((2, 256), 1234.0, np.float32), normal(29, 256)
    return Question(op("LayerNormalization", "x g b", axis=-1), {"x": x, "g": np.ones(256, np.float32), "b": b}, {"y": np.stack([b, b])}, 1e-5)
