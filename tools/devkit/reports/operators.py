"""Operator semantics."""

import numpy as np
from onnx import TensorProto

from ..questions import Question, f32, normal, op
from .cases import case


@case
def resize_nearest_ort28085():
    x = np.arange(26, dtype=np.float32).reshape(1, 1, 1, 26)
    at = (np.arange(64) + 0.5) * 26 / 64 - 0.5
    want = np.clip(np.floor(at + 0.5), 0, 25).astype(np.float32).reshape(1, 1, 1, 64)
    node = op("Resize", "x  scales", mode="nearest", coordinate_transformation_mode="half_pixel", nearest_mode="round_prefer_ceil")
    node.input[:] = ["x", "", "scales"]
    return Question(node, {"x": x, "scales": f32(1, 1, 1, 64 / 26)}, {"y": want}, constants=["scales"])


def linearResize(x, sizes, coordinate):
    """Along the last axis."""
    n, m = x.shape[-1], sizes
    i = np.arange(m)
    at = i * (n - 1) / (m - 1) if coordinate == "align_corners" else i * n / m
    at = np.clip(at, 0, n - 1)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, n - 1)
    return (x[..., low] * (1 - (at - low)) + x[..., high] * (at - low)).astype(np.float32)


def resizeLinear(coordinate):
    x = normal(3, 1, 1, 4, 15)
    node = op("Resize", "x", mode="linear", coordinate_transformation_mode=coordinate)
    node.input[:] = ["x", "", "", "sizes"]
    sizes = np.array([1, 1, 4, 40], np.int64)
    return Question(node, {"x": x, "sizes": sizes}, {"y": linearResize(x, 40, coordinate)}, 1e-6, constants=["sizes"])


@case
def resize_align_corners_ort17564():
    return resizeLinear("align_corners")


@case
def resize_asymmetric_ort17564():
    return resizeLinear("asymmetric")


@case
def resize_fractional_scales_onnx4583():
    """The scale itself counts, not the rounded size over the old one: 0.6 * 15 = 9, 0.61 * 15 = 9.15 gives 9 as well."""
    x = normal(4, 1, 1, 1, 15)
    at = np.minimum(np.arange(9) / np.float64(np.float32(0.61)), 14)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, 14)
    want = (x[..., low] * (1 - (at - low)) + x[..., high] * (at - low)).astype(np.float32)
    node = op("Resize", "x", mode="linear", coordinate_transformation_mode="asymmetric")
    node.input[:] = ["x", "", "scales"]
    return Question(node, {"x": x, "scales": f32(1, 1, 1, 0.61)}, {"y": want}, 1e-5, constants=["scales"])


@case
def pad_reflect_ort6442():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    return Question(op("Pad", "x pads", mode="reflect"), {"x": x, "pads": np.array([2, 1, 1, 3])}, {"y": np.pad(x, ((2, 1), (1, 3)), mode="reflect")})


@case
def conv_negative_pads_tvm13757():
    x, w = normal(5, 1, 2, 6, 6), normal(6, 3, 2, 2, 2)
    inner = x[:, :, 1:-1, 1:-1]
    want = sum(np.einsum("oc,bchw->bohw", w[:, :, i, j], inner[:, :, i : i + 3, j : j + 3]) for i in range(2) for j in range(2))
    return Question(op("Conv", "x w", pads=[-1, -1, -1, -1]), {"x": x, "w": w}, {"y": want}, 1e-5, either=True)


@case
def gather_elements_negative_tvm20217():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    at = np.array([[-1, 0], [-4, -2], [3, -1]])
    return Question(op("GatherElements", "x at", axis=1), {"x": x, "at": at}, {"y": np.take_along_axis(x, at, 1)})


@case
def gather_nd_negative_tvm20217():
    x, at = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([[-1, -1], [0, -2]])
    return Question(op("GatherND", "x at"), {"x": x, "at": at}, {"y": x[tuple(at.T)]})


@case
def scatter_nd_negative_tvm20217():
    x = np.zeros((3, 2), np.float32)
    return Question(op("ScatterND", "x at u"), {"x": x, "at": np.array([[-1], [0]]), "u": f32(1, 2, 3, 4, shape=(2, 2))},
                    {"y": f32(3, 4, 0, 0, 1, 2, shape=(3, 2))})


@case
def gather_elements_out_of_range_tvm20217():
    """No memory outside the data is read (docs/semantics.md)."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    return Question(op("GatherElements", "x at", axis=1), {"x": x, "at": np.array([[-(2**31)], [4]])}, {"y": np.zeros((2, 1), np.float32)}, either=True)


@case
def gather_elements_checks_its_axis_only_ort24917():
    x, at = np.arange(20, dtype=np.float32).reshape(2, 10), np.array([[9, 0, 5]])
    return Question(op("GatherElements", "x at", axis=1), {"x": x, "at": at}, {"y": f32(9, 0, 5, shape=(1, 3))})


@case
def gather_elements_of_nothing_onnx8298():
    x = normal(1, 3, 4)
    return Question(op("GatherElements", "x at", axis=1), {"x": x, "at": np.zeros((3, 0), np.int64)}, {"y": np.zeros((3, 0), np.float32)})


@case
def one_hot_outside_onnx8113():
    ids = np.array([-1, 5, -6, 4, -5, 99])
    want = np.zeros((6, 5), np.float32)
    want[[0, 3, 4], [4, 4, 0]] = 1
    return Question(op("OneHot", "ids depth values"), {"ids": ids, "depth": np.array(5), "values": f32(0, 1)}, {"y": want}, constants=["depth"])


@case
def cast_out_of_range_tvm19542():
    """ONNX leaves it open; docs/semantics.md does not: the low byte of what is cut off, or of the smallest i32. The row is long
    enough for vectors and a tail."""
    x, want = f32(300, np.nan, np.inf, -np.inf, 50, -50, -129.5), [44, 0, 0, 0, 50, -50, 127]
    return Question(op("Cast", "x", to=TensorProto.INT8), {"x": np.tile(x, 11)}, {"y": np.tile(np.array(want, np.int8), 11)})


@case
def float8_scale_powers_onnx7784():
    x = f32(*2.0 ** np.arange(-30, 31))
    nodes = [op("Cast", "x", "e", to=TensorProto.FLOAT8E8M0), op("Cast", "e", to=TensorProto.FLOAT)]
    return Question(nodes, {"x": x}, {"y": x}, opset=24)


@case
def average_pool_ceil_ort16203():
    x = normal(8, 1, 1, 16)
    padded, want = np.pad(x[0, 0], 3), []
    for k in range(6):  # ceil((16 + 6 - 7) / 3) + 1
        window = padded[3 * k : 3 * k + 7]  # the last one has fewer elements inside input and pads
        want.append(window.mean())
    return Question(op("AveragePool", "x", kernel_shape=[7], strides=[3], pads=[3, 3], ceil_mode=1, count_include_pad=1), {"x": x},
                    {"y": f32(*want, shape=(1, 1, 6))}, 1e-5)


@case
def max_pool_window_in_padding_onnx4958():
    """A window that would begin in the padding behind the input does not exist: 2x2, kernel 3, stride 3, pads 1."""
    x = f32(1, 2, 3, 4, shape=(1, 1, 2, 2))
    return Question(op("MaxPool", "x", kernel_shape=[3, 3], strides=[3, 3], pads=[1, 1, 1, 1], ceil_mode=1), {"x": x}, {"y": f32(4, shape=(1, 1, 1, 1))})


@case
def grid_sample_wild_coordinates_ort28302():
    """Far outside with zeros padding: nothing is read, the result is 0 (NaN is left to the engine: only that it returns)."""
    grid = f32(np.inf, -np.inf, 1e30, -1e30, 0, 1e9, shape=(1, 1, 3, 2))
    return Question(op("GridSample", "x grid", mode="nearest", padding_mode="zeros"), {"x": normal(9, 1, 1, 4, 4), "grid": grid},
                    {"y": np.zeros((1, 1, 1, 3), np.float32)})


def gru(seed, batch, size=4, hidden=3, steps=5, **attributes):
    x, w, r = normal(seed, steps, batch, size), normal(seed + 1, 1, 3 * hidden, size), normal(seed + 2, 1, 3 * hidden, hidden)
    return op("GRU", "x w r", "y", hidden_size=hidden, **attributes), {"x": x, "w": w, "r": r}


def gruByHand(x, w, r):
    """linear_before_reset 1, no biases, one sequence."""
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    hidden = r.shape[2]
    h, result = np.zeros(hidden), []
    for row in x.astype(np.float64):
        gates, state = w[0] @ row, r[0] @ h
        z, reset = (sigmoid(gates[k * hidden : (k + 1) * hidden] + state[k * hidden : (k + 1) * hidden]) for k in (0, 1))
        fresh = np.tanh(gates[2 * hidden :] + reset * state[2 * hidden :])
        h = (1 - z) * fresh + z * h
        result.append(h)
    return np.array(result, np.float32)


@case
def gru_batches_are_independent_ort3893():
    node, feeds = gru(11, 4, linear_before_reset=1)
    want = np.stack([gruByHand(feeds["x"][:, b], feeds["w"], feeds["r"]) for b in range(4)], axis=1)[:, None]
    return Question(node, feeds, {"y": want}, 1e-5)


@case
def gru_large_weights_saturate_ort4628():
    node, feeds = gru(12, 2, linear_before_reset=1)
    feeds["w"] *= 1000
    with np.errstate(over="ignore"):
        want = np.stack([gruByHand(feeds["x"][:, b], feeds["w"], feeds["r"]) for b in range(2)], axis=1)[:, None]
    return Question(node, feeds, {"y": want}, 1e-4)


@case
def gru_reverse_of_short_sequences():
    """onnx-tensorflow 342: a reversed sequence begins at its own end; behind it the results are 0."""
    node, feeds = gru(13, 2, linear_before_reset=1, direction="reverse")
    node.input[:] = ["x", "w", "r", "", "lengths"]
    feeds["lengths"] = np.array([3, 5], np.int32)
    want = np.zeros((5, 1, 2, 3), np.float32)
    for b, length in enumerate((3, 5)):
        want[:length, 0, b] = gruByHand(feeds["x"][:length, b][::-1], feeds["w"], feeds["r"])[::-1]
    return Question(node, feeds, {"y": want}, 1e-5)


@case
def reverse_sequence_of_length_0_onnx8304():
    x = normal(14, 2, 4)
    want = np.stack([x[0], x[1, [2, 1, 0, 3]]])
    return Question(op("ReverseSequence", "x lengths", batch_axis=0, time_axis=1), {"x": x, "lengths": np.array([0, 3])}, {"y": want})


@case
def simplified_layer_norm_is_rms_tract2409():
    x, g = normal(15, 3, 8) + 2, normal(16, 8)
    want = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-5) * g
    return Question(op("SimplifiedLayerNormalization", "x g", axis=-1, epsilon=1e-5), {"x": x, "g": g}, {"y": want.astype(np.float32)}, 1e-6)


@case
def constant_lists_tract2111():
    nodes = [op("Constant", "", "a", value_ints=[3, -1]), op("Constant", "", "f", value_floats=[0.5, 2.0]), op("Cast", "a", "b", to=TensorProto.FLOAT),
             op("Add", "b f", "c"), op("Add", "c x")]
    return Question(nodes, {"x": f32(1, 1)}, {"y": f32(4.5, 2)})


@case
def gru_both_ways_of_short_sequences():
    """onnx-tensorflow 342, bidirectional: the second direction begins at each sequence's own end."""
    node, feeds = gru(31, 3, linear_before_reset=1, direction="bidirectional")
    node.input[:] = ["x", "w", "r", "", "lengths"]
    feeds["w"], feeds["r"] = normal(32, 2, 9, 4), normal(33, 2, 9, 3)
    feeds["lengths"] = np.array([2, 5, 1], np.int32)
    want = np.zeros((5, 2, 3, 3), np.float32)
    for b, length in enumerate(feeds["lengths"]):
        row = feeds["x"][:length, b]
        want[:length, 0, b] = gruByHand(row, feeds["w"][:1], feeds["r"][:1])
        want[:length, 1, b] = gruByHand(row[::-1], feeds["w"][1:], feeds["r"][1:])[::-1]
    return Question(node, feeds, {"y": want}, 1e-5)


@case
def average_pool_window_in_padding_onnx5235():
    """Of 4 rows, kernel 2, stride 3, pads 1: a third window would begin in the padding at the end and does not exist."""
    x = normal(34, 1, 1, 4, 6)
    want = np.zeros((1, 1, 2, 3), np.float32)
    for i in range(2):
        for j in range(3):
            part = x[0, 0, max(3 * i - 1, 0) : 3 * i + 1, max(3 * j - 1, 0) : 3 * j + 1]
            want[0, 0, i, j] = part.mean()
    return Question(op("AveragePool", "x", kernel_shape=[2, 2], strides=[3, 3], pads=[1] * 4, ceil_mode=1), {"x": x}, {"y": want}, 1e-5)


def scaleBytes(mode, *exponents):
    x = f32(1, np.float32(1) + np.float32(2**-23), 1.75, np.float32(2) - np.float32(2**-23))
    nodes = [op("Cast", "x", "e", to=TensorProto.FLOAT8E8M0, round_mode=mode), op("Cast", "e", to=TensorProto.FLOAT)]
    return Question(nodes, {"x": x}, {"y": f32(*2.0 ** np.array(exponents))}, opset=24)


@case
def float8_scale_rounds_up_onnx7784():
    return scaleBytes("up", 0, 1, 1, 1)


@case
def float8_scale_rounds_down_onnx7784():
    return scaleBytes("down", 0, 0, 0, 0)


@case
def float8_scale_rounds_to_nearest_onnx7784():
    return scaleBytes("nearest", 0, 0, 1, 1)


def reflected(corners, want):
    """Nearest, on a row of four: coordinates beyond either end, reflected at the edges' centres or at the edges."""
    at = f32(-1.75, -1.25, 1.25, 1.75)
    grid = np.stack([at, np.zeros(4, np.float32)], axis=-1).reshape(1, 1, 4, 2)
    return Question(op("GridSample", "x grid", mode="nearest", padding_mode="reflection", align_corners=corners),
                    {"x": f32(0, 1, 2, 3, shape=(1, 1, 1, 4)), "grid": grid}, {"y": f32(*want, shape=(1, 1, 1, 4))})


@case
def grid_sample_reflects_at_centres_onnx4033():
    """x = (g + 1) / 2 * 3: -1.125, -0.375, 3.375, 4.125; reflected at 0 and 3: 1.125, 0.375, 2.625, 1.875."""
    return reflected(1, [1, 0, 3, 2])


@case
def grid_sample_reflects_at_edges_onnx4033():
    """x = ((g + 1) * 4 - 1) / 2: -2, -1, 4, 5; reflected at -0.5 and 3.5: 1, 0, 3, 2."""
    return reflected(0, [1, 0, 3, 2])
