"""Recipes: quantisation, products of integers, and clusters that become operations on bytes.

Scales are powers of two and integers small, so that every step is exact and ties are met: a cluster that is computed in integers must give
the very numbers of the graph as it stands."""

import numpy as np

from .contractions import window
from .draw import recipe
from .values import F16, F32, I8, U8


@recipe(2.5)
def quantise(draw):
    """Both ways."""
    a = draw.any((F32, F32, F16), exact=True, odd=False)
    if a.dtype == F16 and draw.opset < 19:
        return
    kind = draw.pick([U8, I8])
    perAxis = a.array.ndim >= 1 and draw.chance(0.4)
    axis = draw.axis(a.array.ndim) if perAxis else 1
    shape = [a.shape[axis]] if perAxis else []
    scale = draw.give((2.0 ** draw.random.integers(-3, 1, shape)).astype(a.dtype))
    zero = draw.give(draw.array(kind, shape, low=-3, high=3, odd=False))
    attributes = {"axis": axis} if perAxis else {}
    made = draw.add("QuantizeLinear", [a, scale, zero], **attributes)
    if made and draw.chance(0.7):
        draw.add("DequantizeLinear", [made[0], scale, zero], dtype=a.dtype, **attributes)


@recipe(1.5)
def integerProduct(draw):
    a = draw.any((U8, I8), rank=range(2, 4))
    b = draw.fresh(draw.pick([U8, I8]), [a.shape[-1], draw.pick([1, 4, 9])])
    zeros = [draw.give(draw.array(v.dtype, [], low=0, high=9, odd=False)) for v in (a, b)]
    if draw.chance(0.5):
        draw.add("MatMulInteger", [a, b, *zeros[: draw.integer(0, 2)]])
        return
    out = draw.pick([U8, I8])
    power = lambda low, high: draw.give(np.array(2.0 ** draw.integer(low, high), np.float32))
    draw.add("QLinearMatMul", [a, power(-3, 0), zeros[0], b, power(-3, 0), zeros[1], power(0, 4), draw.give(np.array(3, out))])


@recipe(0.5)
def convInteger(draw):
    a = draw.any((U8, I8), rank=4, fits=lambda v: 0 not in v.shape)
    if a is not None:
        kernel = [draw.integer(1, min(3, n)) for n in a.shape[2:]]
        draw.add("ConvInteger", [a, draw.fresh(U8, [draw.pick([1, 4]), a.shape[1], *kernel])], strides=[draw.pick([1, 2])] * 2)


def power(draw, low, high, shape=()):
    return draw.give((2.0 ** draw.random.integers(low, high, shape, endpoint=True)).astype(np.float32), constant=True)


def throughBytes(draw, x):
    """x quantised and back, or None."""
    kind = draw.pick([U8, I8])
    scale, zero = power(draw, -3, -1), draw.give(draw.array(kind, [], low=0, high=5, odd=False), constant=True)
    made = draw.add("QuantizeLinear", [x, scale, zero])
    back = made and draw.add("DequantizeLinear", [made[0], scale, zero], dtype=F32)
    return back and back[0]


def byteWeights(draw, shape, axis):
    """Constants of few bits as f32, with a scale for all or one per element of the axis."""
    w = draw.give(draw.array(I8, shape, low=-8, high=8, odd=False), constant=True)
    perAxis = draw.chance(0.5)
    made = draw.add("DequantizeLinear", [w, power(draw, -3, -1, [shape[axis]] if perAxis else ())], dtype=F32, **({"axis": axis} if perAxis else {}))
    return made and made[0]


@recipe(2.5)
def cluster(draw):
    """What quantisers write around a product or a sum."""
    a = draw.any((F32,), rank=range(2, 5), exact=True, odd=False, fits=lambda v: 0 not in v.shape and np.abs(v.array).max(initial=0) <= 16)
    x = a and throughBytes(draw, a)
    if x is None:
        return
    kind = draw.pick(["Conv", "MatMul", "Add"]) if a.array.ndim > 2 else draw.pick(["MatMul", "Add"])
    if kind == "Conv":
        kernel, attributes = window(draw, a.shape[2:])
        group = draw.pick([1, 1, a.shape[1]])
        w = byteWeights(draw, [group * draw.pick([1, 4, 8]), a.shape[1] // group, *kernel], 0)
        made = w and draw.add("Conv", [x, w], group=group, **attributes)
    elif kind == "MatMul":
        w = byteWeights(draw, [a.shape[-1], draw.pick([1, 5, 16, 17])], 1)
        made = w and draw.add("MatMul", [x, w])
    else:
        other = throughBytes(draw, draw.fresh(F32, a.shape, odd=False))
        made = other and draw.add("Add", [x, other])
    if made and draw.chance(0.4):
        made = draw.add("Relu", made)
    if made and made[0].exact:
        throughBytes(draw, made[0])
