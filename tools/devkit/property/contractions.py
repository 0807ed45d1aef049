"""Recipes: products, convolutions, pools, resampling, attention, recurrences."""

import numpy as np

from .draw import recipe
from .values import BF16, F16, F32, F64, I32, I64

NETS = (F32, F32, F32, F16, F64)


@recipe(5)
def matmul(draw):
    a = draw.any((F32, F32, F16, F64, BF16, I32, I64), rank=range(1, 5), odd=False)
    k, n = a.shape[-1], draw.pick([1, 2, 3, 5, 8, 16, 17, 33])
    fits = lambda v: v.array.ndim >= 1 and v.shape[-min(2, v.array.ndim)] == k and alike(a.shape[:-2], v.shape[:-2])
    b = draw.any((a.dtype,), rank=range(1, 5), fits=fits, odd=False) if draw.chance(0.3) else None
    if b is None:
        batch = draw.broadcastable(a.shape[:-2]) if a.array.ndim > 2 and draw.chance(0.4) else []
        b = draw.fresh(a.dtype, [k] if draw.chance(0.1) else [*batch, k, n], low=-2, high=2, odd=False)
    draw.add("MatMul", [a, b])


def alike(a, b):
    try:
        return np.broadcast_shapes(a, b) is not None
    except ValueError:
        return False


@recipe(2)
def gemm(draw):
    a = draw.any((F32, F32, F64, F16), rank=2, odd=False)
    turnA, turnB = draw.pick([0, 0, 1]), draw.pick([0, 1])
    m, k = a.shape[::-1] if turnA else a.shape
    n = draw.pick([1, 3, 8, 17])
    b = draw.fresh(a.dtype, [n, k] if turnB else [k, n], low=-2, high=2, odd=False)
    c = [draw.fresh(a.dtype, draw.pick([[n], [1], [m, n], [m, 1], []]), odd=False)] if draw.chance(0.7) else []
    factors = {} if draw.chance(0.6) else {"alpha": draw.pick([0.5, 2.0]), "beta": draw.pick([0.0, 0.5])}
    draw.add("Gemm", [a, b, *c], transA=turnA, transB=turnB, **factors)


@recipe(1)
def einsum(draw):
    text, ranks = draw.pick([("ij,jk->ik", (2, 2)), ("bij,bkj->bik", (3, 3)), ("i,j->ij", (1, 1)), ("ij->ji", (2,)), ("bhid,bhjd->bhij", (4, 4)),
                             ("ii->i", (2,)), ("ij,ij->i", (2, 2)), ("...ij,...jk->...ik", (3, 3))])
    a = draw.any((F32, F64), rank=ranks[0], odd=False)
    terms = text.replace("...", "b").split("->")[0].split(",")
    sizes = dict(zip(terms[0], a.shape))
    if terms[0] == "ii" and a.shape[0] != a.shape[1]:
        return
    shapes = [[sizes.setdefault(letter, draw.pick([1, 2, 5])) for letter in term] for term in terms[1:]]
    others = [draw.fresh(a.dtype, shape, low=-2, high=2, odd=False) for shape in shapes]
    draw.add("Einsum", [a, *others], equation=text)


def image(draw, types=NETS, rank=range(3, 6)):
    return draw.any(types, rank=rank, odd=False, fits=lambda v: 0 not in v.shape)


def window(draw, shape):
    """(kernel, attributes) of a window that fits."""
    kernel = [draw.integer(1, min(3, n)) for n in shape]
    attributes = {"kernel_shape": kernel, "strides": [draw.pick([1, 1, 2, 3]) for _ in shape]}
    if draw.chance(0.15):
        attributes["auto_pad"] = draw.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
    else:
        attributes["pads"] = [draw.integer(0, k - 1) for k in kernel * 2]
    if draw.chance(0.3) and "auto_pad" not in attributes:
        attributes["dilations"] = [2 if k > 1 and 2 * k - 1 <= n and draw.chance(0.5) else 1 for k, n in zip(kernel, shape)]
    return kernel, attributes


@recipe(5)
def conv(draw):
    a = image(draw)
    if a is None:
        return
    kernel, attributes = window(draw, a.shape[2:])
    channels = a.shape[1]
    group = draw.pick([1, 1, channels, *(g for g in (2, 3) if channels % g == 0)])
    outputs = group * draw.pick([1, 2, 5, 8])
    w = draw.fresh(a.dtype, [outputs, channels // group, *kernel], low=-2, high=2, odd=False)
    bias = [draw.fresh(a.dtype, [outputs], odd=False)] if draw.chance(0.5) else []
    draw.add("Conv", [a, w, *bias], group=group, **attributes)


@recipe(1.5)
def convTranspose(draw):
    a = image(draw, (F32, F64))
    if a is None:
        return
    rank, channels = a.array.ndim - 2, a.shape[1]
    kernel, strides = [draw.integer(1, 3) for _ in range(rank)], [draw.pick([1, 2]) for _ in range(rank)]
    group = draw.pick([1, channels])
    w = draw.fresh(a.dtype, [channels, draw.pick([1, 3]), *kernel], low=-2, high=2, odd=False)
    draw.add("ConvTranspose", [a, w], group=group, strides=strides, pads=[draw.integer(0, (k - 1) // 2) for k in kernel * 2])


@recipe(2.5)
def pool(draw):
    kind = draw.pick(["MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool"])
    a = image(draw, (F32, F64, F16) if kind != "LpPool" else (F32,))
    if a is None:
        return
    if kind.startswith("Global"):
        draw.add(kind, [a], rounds=kind == "GlobalAveragePool")
        return
    _, attributes = window(draw, a.shape[2:])
    if kind == "LpPool":
        attributes.pop("dilations", None)
        attributes["p"] = draw.pick([1, 2])
    elif "auto_pad" not in attributes:
        attributes["ceil_mode"] = draw.pick([0, 0, 1])
    if kind == "AveragePool":
        attributes["count_include_pad"] = draw.pick([0, 1])
        attributes.pop("dilations", None)
    draw.add(kind, [a], rounds=kind != "MaxPool", **attributes)


COORDINATES = 16  # a coordinate has a rounding of its own, which the differences between neighbours multiply


@recipe(1.5)
def resize(draw):
    a = image(draw, (F32,), rank=4)
    if a is None:
        return
    mode = draw.pick(["nearest", "linear", "cubic"])
    # The reference implementation does not follow the formula of pytorch_half_pixel for a new length of 1; cubic shows it.
    coordinate = draw.pick(["half_pixel", "asymmetric", "align_corners", *(["pytorch_half_pixel"] if mode != "cubic" else [])])
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinate}
    if mode == "nearest":
        attributes["nearest_mode"] = draw.pick(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    if draw.chance(0.5):
        scales = draw.setting(np.array([1, 1, draw.pick([0.5, 1, 2, 3]), draw.pick([1, 2, 1.5])], np.float32))
        draw.add("Resize", [a, None, scales], rounds=mode != "nearest", loose=COORDINATES, **attributes)
    else:
        sizes = draw.setting(np.array([*a.shape[:2], draw.integer(1, 9), draw.integer(1, 9)]))
        draw.add("Resize", [a, None, None, sizes], rounds=mode != "nearest", loose=COORDINATES, **attributes)


@recipe(0.7)
def gridSample(draw):
    a = image(draw, (F32,), rank=4)
    if a is None or draw.opset < 20:
        return
    grid = draw.fresh(F32, [a.shape[0], draw.integer(1, 4), draw.integer(1, 4), 2], low=-1, high=1, odd=False)
    draw.add("GridSample", [a, grid], rounds=True, loose=COORDINATES, mode=draw.pick(["linear", "cubic"]),
             padding_mode=draw.pick(["zeros", "border", "reflection"]), align_corners=draw.pick([0, 1]))


@recipe(1.5)
def attention(draw):
    if draw.opset < 23:
        return
    b, heads, d, tokens, keys = draw.integer(1, 2), draw.pick([1, 2, 4]), draw.pick([2, 4, 8, 9]), draw.integer(1, 5), draw.integer(1, 9)
    shared = draw.pick([h for h in (1, 2, 4) if heads % h == 0])
    dtype = draw.pick([F32, F32, F16])
    q = draw.fresh(dtype, [b, heads, tokens, d], low=-2, high=2, odd=False)
    k, v = (draw.fresh(dtype, [b, shared, keys, d], low=-2, high=2, odd=False) for _ in range(2))
    mask = [draw.fresh(dtype, draw.pick([[tokens, keys], [b, 1, tokens, keys]]), low=-4, high=1, odd=False)] if draw.chance(0.4) else []
    attributes = {"is_causal": 1} if draw.chance(0.4) else {}
    if draw.chance(0.2):
        attributes["softcap"] = 4.0
    draw.add("Attention", [q, k, v, *mask], rounds=True, **attributes)


@recipe(0.7)
def rotary(draw):
    if draw.opset < 23:
        return
    b, heads, tokens, d = draw.integer(1, 2), draw.integer(1, 3), draw.integer(1, 4), draw.pick([4, 8, 16])
    a = draw.fresh(F32, [b, heads, tokens, d], odd=False)
    cos, sin = (draw.fresh(F32, [b, tokens, d // 2], low=-1, high=1, odd=False) for _ in range(2))
    draw.add("RotaryEmbedding", [a, cos, sin], rounds=True, interleaved=draw.pick([0, 1]))


@recipe(0.5)
def lstm(draw):
    steps, batch, size, hidden = draw.integer(1, 5), draw.integer(1, 3), draw.integer(1, 5), draw.pick([1, 3, 8])
    kind, gates = draw.pick([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    ways = draw.pick([1, 1, 2])
    x = draw.fresh(F32, [steps, batch, size], low=-2, high=2, odd=False)
    w, r = (draw.fresh(F32, [ways, gates * hidden, n], low=-1, high=1, odd=False) for n in (size, hidden))
    bias = draw.fresh(F32, [ways, 2 * gates * hidden], low=-1, high=1, odd=False) if draw.chance(0.6) else None
    extra = {"linear_before_reset": draw.pick([0, 1])} if kind == "GRU" else {}
    draw.add(kind, [x, w, r, bias] if bias is not None else [x, w, r], 3 if kind == "LSTM" else 2, rounds=True, hidden_size=hidden,
             direction="bidirectional" if ways == 2 else draw.pick(["forward", "reverse"]), **extra)


@recipe(0.4)
def determinant(draw):
    n = draw.integer(1, 4)
    draw.add("Det", [draw.fresh(F32, [*draw.shape(draw.integer(0, 1), 8), n, n], odd=False)], rounds=True)
