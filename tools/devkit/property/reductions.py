"""Recipes: reductions, running sums, extremes, normalisations."""

import numpy as np

from .draw import recipe
from .values import BF16, F16, F32, F64, I8, I32, I64, U8

EXACT = {"ReduceSum": (F32, F64, F16, I64, I32, BF16), "ReduceMax": (F32, F64, F16, I64, I32, U8, I8), "ReduceMin": (F32, F64, F16, I64, I32, U8, I8),
         "ReduceProd": (F32, F64, I64, I32), "ReduceL1": (F32, F64, I32), "ReduceSumSquare": (F32, F64, I32)}
ROUNDING = {"ReduceMean": (F32, F64, F16, BF16), "ReduceL2": (F32, F64, F16), "ReduceLogSum": (F32, F64), "ReduceLogSumExp": (F32, F64, F16)}


@recipe(6)
def reduce(draw):
    kind = draw.pick([*EXACT, *ROUNDING])
    a = draw.any(EXACT.get(kind) or ROUNDING[kind])
    attributes = {} if draw.chance(0.3) else {"keepdims": draw.pick([0, 1])}
    choice = draw.pick(["all", "some", "some", "last", "none"])
    if choice == "all" or a.array.ndim == 0:
        operands = [a]
    elif choice == "none":
        operands, attributes["noop_with_empty_axes"] = [a, draw.setting(np.zeros(0, np.int64))], draw.pick([0, 1])
    else:
        axes = [a.array.ndim - 1] if choice == "last" else draw.some(range(a.array.ndim), least=1)
        operands = [a, draw.setting(np.array([k - a.array.ndim if draw.chance(0.4) else k for k in axes]))]
    draw.add(kind, operands, rounds=kind in ROUNDING, **attributes)


@recipe(2)
def argExtreme(draw):
    a = draw.any((F32, F64, F16, I32, U8, I8), rank=range(1, 5), exact=True, odd=False)
    draw.add(draw.pick(["ArgMax", "ArgMin"]), [a], axis=draw.axis(a.array.ndim), keepdims=draw.pick([0, 1]), select_last_index=draw.pick([0, 0, 1]))


@recipe(1.5)
def topK(draw):
    a = draw.any((F32, F64, I64, I32, F16), rank=range(1, 5), exact=True, odd=False)
    axis = draw.axis(a.array.ndim)
    k = draw.integer(0, a.shape[axis])
    draw.add("TopK", [a, draw.setting(np.array([k]))], 2, axis=axis, largest=draw.pick([0, 1]), sorted=1)


@recipe(1.5)
def running(draw):
    a = draw.any((F32, F64, I64, I32), rank=range(1, 5))
    draw.add("CumSum", [a, draw.setting(np.array(draw.axis(a.array.ndim)))], exclusive=draw.pick([0, 1]), reverse=draw.pick([0, 1]))


@recipe(3)
def softmax(draw):
    kind = draw.pick(["Softmax", "Softmax", "LogSoftmax", "Hardmax"])
    a = draw.any((F32, F64, F16, BF16), rank=range(1, 5), exact=kind == "Hardmax", odd=False)
    draw.add(kind, [a], rounds=True, axis=draw.axis(a.array.ndim))


def scales(draw, dtype, shape):
    return draw.fresh(dtype, shape, low=-2, high=2, odd=False)


@recipe(2)
def layerNorm(draw):
    a = draw.any((F32, F16, F64), rank=range(1, 5), odd=False)
    axis = draw.axis(a.array.ndim)
    over = a.shape[axis % a.array.ndim :]
    bias = [scales(draw, a.dtype, over)] if draw.chance(0.7) else []
    draw.add("LayerNormalization", [a, scales(draw, a.dtype, over), *bias], rounds=True, axis=axis, epsilon=1e-2)


@recipe(1)
def rmsNorm(draw):
    a = draw.any((F32, F16, F64), rank=range(1, 5), odd=False)
    axis = draw.axis(a.array.ndim)
    if draw.opset >= 23:
        draw.add("RMSNormalization", [a, scales(draw, a.dtype, a.shape[axis % a.array.ndim :])], rounds=True, axis=axis, epsilon=1e-2)


@recipe(1)
def spatialNorm(draw):
    a = draw.any((F32, F64, F16), rank=range(3, 5), odd=False)
    c = [a.shape[1]]
    kind = draw.pick(["InstanceNormalization", "BatchNormalization", "GroupNormalization"])
    if kind == "InstanceNormalization":
        draw.add(kind, [a, scales(draw, a.dtype, c), scales(draw, a.dtype, c)], rounds=True, epsilon=1e-2)
    elif kind == "BatchNormalization":
        variance = draw.fresh(a.dtype, c, low=1, high=4, odd=False)
        draw.add(kind, [a, *(scales(draw, a.dtype, c) for _ in range(3)), variance], rounds=True, epsilon=1e-2)
    elif draw.opset >= 21 and c[0]:
        groups = draw.pick([g for g in range(1, c[0] + 1) if c[0] % g == 0])
        draw.add(kind, [a, scales(draw, a.dtype, c), scales(draw, a.dtype, c)], rounds=True, num_groups=groups, epsilon=1e-2)


@recipe(0.7)
def otherNorm(draw):
    kind = draw.pick(["LpNormalization", "MeanVarianceNormalization", "LRN"])
    if kind == "LpNormalization":
        a = draw.any((F32, F64), rank=range(1, 5), odd=False)
        draw.add(kind, [a], rounds=True, axis=draw.axis(a.array.ndim), p=draw.pick([1, 2]))
    elif kind == "LRN":
        draw.add(kind, [draw.any((F32,), rank=4, odd=False)], rounds=True, loose=4, size=draw.pick([1, 3, 5]), alpha=0.5, beta=0.75,
                 bias=1.0)  # loose: a power is an f32 logarithm
    else:
        a = draw.any((F32,), rank=range(2, 5), odd=False)
        draw.add(kind, [a], rounds=True, axes=sorted(draw.some(range(a.array.ndim), least=1)))
