"""Recipes: operators that move elements: layout, joining, cutting, indexing."""

import numpy as np

from .draw import LARGEST, recipe
from .values import ALL, BOOL, F16, F32, F64, I32, I64, NUMBERS, U8


@recipe(3)
def transpose(draw):
    a = draw.any(ALL)
    if draw.chance(0.15) or not a.shape:
        draw.add("Transpose", [a])
    else:
        draw.add("Transpose", [a], perm=[int(k) for k in draw.random.permutation(a.array.ndim)])


def factors(draw, size):
    """A shape of so many elements."""
    shape = []
    while size > 1 and len(shape) < 4 and draw.chance(0.8):
        divisors = [d for d in range(1, size + 1) if size % d == 0]
        shape.append(draw.pick(divisors))
        size //= shape[-1]
    return shape + [size]


@recipe(3)
def reshape(draw):
    a = draw.any(ALL)
    to = factors(draw, a.array.size)
    if a.array.size and draw.chance(0.4):
        to[draw.integer(0, len(to) - 1)] = -1
    zeros = 0
    for k in range(min(len(to), a.array.ndim)):
        if to[k] == a.shape[k] and draw.chance(0.5):
            to[k], zeros = 0, zeros + 1
    if draw.chance(0.8) or 0 in a.shape:
        draw.add("Reshape", [a, draw.setting(np.array(to, np.int64))], **({"allowzero": 1} if 0 in a.shape and -1 not in to else {}))
    elif zeros == 0:
        draw.add("Flatten", [a], axis=draw.axis(a.array.ndim) if a.array.ndim else 0)


@recipe(1)
def reshapeByShape(draw):
    """The exporters' way: dims cut out of Shape, joined with numbers."""
    a = draw.any(ALL, rank=range(2, 5), fits=lambda v: 0 not in v.shape)
    if a is None:
        return
    (shape,) = draw.add("Shape", [a])
    (first,) = draw.add("Gather", [shape, draw.give(np.array([0]), constant=True)], axis=0)
    (target,) = draw.add("Concat", [first, draw.give(np.array([-1]), constant=True)], axis=0)
    draw.add("Reshape", [a, target])


@recipe(2)
def unsqueeze(draw):
    a = draw.any(ALL)
    ones = [k for k, n in enumerate(a.shape) if n == 1]
    if ones and draw.chance(0.5):
        axes = draw.some(ones, least=1)
        draw.add("Squeeze", [a, draw.setting(np.array([k - a.array.ndim if draw.chance(0.3) else k for k in axes]))])
    elif a.array.ndim < 5:
        draw.add("Unsqueeze", [a, draw.setting(np.array([draw.axis(a.array.ndim + 1)]))])


@recipe(1.5)
def expand(draw):
    a = draw.any(ALL)
    to = [draw.pick([2, 3, 5]) if n == 1 and draw.chance(0.6) else (1 if draw.chance(0.2) else n) for n in a.shape]
    to = to[draw.integer(0, len(to)) if draw.chance(0.1) else 0 :]
    to = [draw.pick([1, 2])] * draw.integer(0, 1) + to
    if np.prod(to, dtype=int) * max(a.array.size, 1) < LARGEST:
        draw.add("Expand", [a, draw.setting(np.array(to, np.int64))])


@recipe(1)
def tile(draw):
    a = draw.any(ALL, rank=range(1, 5))
    draw.add("Tile", [a, draw.setting(np.array([draw.pick([1, 1, 2, 3, 0] if draw.chance(0.1) else [1, 1, 2]) for _ in a.shape]))])


@recipe(4)
def concat(draw):
    a = draw.any(ALL, rank=range(1, 6))
    axis = draw.axis(a.array.ndim)
    place = axis % a.array.ndim
    parts = [a]
    for _ in range(draw.integer(0, 2)):
        fits = lambda v: v.array.ndim == a.array.ndim and all(k == place or m == n for k, (m, n) in enumerate(zip(v.shape, a.shape)))
        other = draw.any((a.dtype,), fits=fits) if draw.chance(0.6) else None
        parts.append(other or draw.fresh(a.dtype, [draw.pick([1, 2, 3, 5, 8]) if k == place else n for k, n in enumerate(a.shape)]))
    draw.add("Concat", [parts[k] for k in draw.random.permutation(len(parts))], axis=axis)


@recipe(3)
def split(draw):
    a = draw.any(ALL, rank=range(1, 6))
    axis = draw.axis(a.array.ndim)
    size = a.shape[axis]
    parts = draw.integer(1, 3)
    if draw.chance(0.4) and size >= parts * parts:
        draw.add("Split", [a], parts, axis=axis, num_outputs=parts)
    else:
        cuts = sorted(draw.integer(0, size) for _ in range(parts - 1))
        sizes = np.diff([0, *cuts, size])
        draw.add("Split", [a, draw.setting(sizes.astype(np.int64))], parts, axis=axis)


@recipe(4)
def cut(draw):
    """Slice, steps of both signs, limits far outside."""
    a = draw.any(ALL, rank=range(1, 6))
    axes = draw.some(range(a.array.ndim), least=1)
    begins, ends, steps = [], [], []
    for k in axes:
        n, step = a.shape[k], draw.pick([1, 1, 1, 2, 3, -1, -2])
        begin, end = sorted(draw.integer(0, n) for _ in range(2))
        if step < 0:
            begin, end = max(end - 1, 0), begin - 1 - n if begin == 0 else begin - 1
        elif draw.chance(0.3):
            end = draw.pick([2**63 - 1, 2**31 - 1, -1])
        begins.append(begin - n if n and draw.chance(0.3) and begin < n else begin)
        ends.append(end)
        steps.append(step)
    index = draw.pick([np.int64, np.int64, np.int32])
    narrow = lambda values: np.clip(values, -(2**31), 2**31 - 1).astype(index) if index == np.int32 else np.array(values, np.int64)
    axes = [k - a.array.ndim if draw.chance(0.3) else k for k in axes]
    draw.add("Slice", [a, *(draw.setting(narrow(values)) for values in (begins, ends, axes, steps))])


@recipe(2)
def pad(draw):
    mode = draw.pick(["constant", "constant", "reflect", "edge", "wrap"])
    types = NUMBERS + (BOOL,) if mode == "constant" else (F32, F64, I32, I64, U8)
    a = draw.any(types, rank=range(1, 5), fits=lambda v: mode == "constant" or 0 not in v.shape)
    if a is None or mode == "wrap" and draw.opset < 19:
        return
    axes = draw.some(range(a.array.ndim), least=1) if draw.chance(0.4) else None
    most = lambda k: 2 if mode == "constant" else min(2, a.shape[k] - 1)
    over = axes or range(a.array.ndim)
    pads = [draw.integer(0, max(most(k), 0)) for _ in range(2) for k in over]
    if mode == "constant" and draw.chance(0.15):
        pads = [-1 if a.shape[k % len(a.shape)] > 4 and axes is None and draw.chance(0.4) else p for k, p in enumerate(pads)]
    value = draw.give(draw.array(a.dtype, [], odd=False)) if mode == "constant" and (a.dtype == BOOL or draw.chance(0.5)) else None
    operands = [a, draw.setting(np.array(pads, np.int64)), value, draw.setting(np.array(axes, np.int64)) if axes else None]
    while operands[-1] is None:
        operands.pop()
    draw.add("Pad", operands, mode=mode)


def indices(draw, shape, size, dtype=None):
    """Legal indices of an axis, from either end."""
    dtype = dtype or draw.pick([np.int64, np.int64, np.int32])
    return draw.give(draw.random.integers(-size, size, shape).astype(dtype))


@recipe(3)
def gather(draw):
    a = draw.any(ALL, rank=range(1, 5))
    axis = draw.axis(a.array.ndim)
    if a.shape[axis]:
        draw.add("Gather", [a, indices(draw, draw.shape(draw.integer(0, 2), 30), a.shape[axis])], axis=axis)


@recipe(1.5)
def gatherElements(draw):
    a = draw.any(ALL, rank=range(1, 5), fits=lambda v: 0 not in v.shape)
    if a is None:
        return
    axis = draw.axis(a.array.ndim)
    shape = [draw.integer(1, 6) if k == axis % a.array.ndim else draw.integer(1, n) for k, n in enumerate(a.shape)]
    draw.add("GatherElements", [a, indices(draw, shape, a.shape[axis])], axis=axis)


def tuples(draw, shape, count, depth, unique=False):
    """count index tuples into the first `depth` axes."""
    sizes = shape[:depth]
    every = int(np.prod(sizes))
    flat = draw.random.permutation(every)[:count] if unique else draw.random.integers(0, every, count)
    found = np.stack(np.unravel_index(flat, sizes), axis=-1).astype(np.int64)
    return np.where(draw.random.random(found.shape) < 0.2, found - np.array(sizes), found)


@recipe(1.5)
def gatherNd(draw):
    a = draw.any(ALL, rank=range(1, 5), fits=lambda v: 0 not in v.shape)
    if a is not None:
        draw.add("GatherND", [a, draw.give(tuples(draw, a.shape, draw.integer(1, 5), draw.integer(1, a.array.ndim)))])


@recipe(1.5)
def scatterNd(draw):
    a = draw.any(NUMBERS, rank=range(1, 5), fits=lambda v: 0 not in v.shape)
    if a is None:
        return
    depth = draw.integer(1, a.array.ndim)
    reduction = draw.pick(["none", "none", "add", "mul", "max", "min"])
    at = tuples(draw, a.shape, draw.integer(1, 4), depth, unique=reduction == "none")
    draw.add("ScatterND", [a, draw.give(at), draw.fresh(a.dtype, [len(at), *a.shape[depth:]], odd=False)], reduction=reduction)


@recipe(1.5)
def scatterElements(draw):
    a = draw.any(NUMBERS, rank=range(1, 5), fits=lambda v: 0 not in v.shape)
    if a is None:
        return
    axis = draw.integer(0, a.array.ndim - 1)
    reduction = draw.pick(["none", "none", "add", "mul", "max", "min"])
    shape = [draw.integer(1, n) for n in a.shape]
    lines = np.argsort(draw.random.random([n if k == axis else m for k, (n, m) in enumerate(zip(a.shape, shape))]), axis=axis)  # no index twice
    at = np.take(lines, range(shape[axis]), axis=axis).astype(draw.pick([np.int64, np.int32]))
    draw.add("ScatterElements", [a, draw.give(at), draw.fresh(a.dtype, shape, odd=False)], axis=axis, reduction=reduction)


@recipe(1)
def depthToSpace(draw):
    block = 2
    a = draw.any((F32, F16, F64), rank=4, fits=lambda v: v.shape[1] % block**2 == 0 or v.shape[2] % block == v.shape[3] % block == 0)
    if a is None:
        return
    if a.shape[1] % block**2 == 0:
        draw.add("DepthToSpace", [a], blocksize=block, mode=draw.pick(["DCR", "CRD"]))
    else:
        draw.add("SpaceToDepth", [a], blocksize=block)


@recipe(0.7)
def trilu(draw):
    a = draw.any((F32, F64, I64, F16, BOOL), rank=range(2, 5))
    draw.add("Trilu", [a] + ([draw.setting(np.array(draw.integer(-3, 3)))] if draw.chance(0.6) else []), upper=draw.pick([0, 1]))


@recipe(0.7)
def reverse(draw):
    a = draw.any(ALL, rank=range(2, 5))
    time = draw.pick([0, 1])
    draw.add("ReverseSequence", [a, draw.give(draw.random.integers(0, a.shape[time] + 1, a.shape[1 - time]))], time_axis=time, batch_axis=1 - time)


@recipe(0.7)
def oneHot(draw):
    depth = draw.integer(1, 6)
    a = draw.fresh(draw.pick([I64, I32]), draw.shape(draw.integer(0, 3), 60), low=-depth, high=depth - 1, odd=False)
    values = draw.fresh(draw.pick([F32, I64, F32]), [2], odd=False)
    draw.add("OneHot", [a, draw.setting(np.array(depth)), values], axis=draw.axis(a.array.ndim + 1))


@recipe(1)
def ofData(draw):
    """Sizes that only data tells."""
    kind = draw.pick(["NonZero", "Compress", "Unique"])
    if kind == "NonZero":
        draw.add(kind, [draw.any(NUMBERS + (BOOL,), rank=range(1, 5), exact=True)])
    elif kind == "Compress":
        a = draw.any(ALL, rank=range(1, 5))
        axis = draw.axis(a.array.ndim)
        draw.add(kind, [a, draw.fresh(BOOL, [draw.integer(0, a.shape[axis])])], axis=axis)
    else:
        a = draw.any((F32, I64, I32), exact=True, odd=False)
        draw.add(kind, [a], 4, sorted=draw.pick([0, 1]) if a.array.ndim == 1 else 1)


@recipe(0.7)
def made(draw):
    """Tensors out of numbers."""
    kind = draw.pick(["Range", "ConstantOfShape", "EyeLike", "Shape", "Size", "CenterCropPad"])
    if kind == "Range":
        dtype = draw.pick([I64, I32, F32])
        first, step = draw.integer(-4, 4), draw.pick([1, 2, -1, 3])
        draw.add(kind, [draw.setting(np.array(v, dtype)) for v in (first, first + step * draw.integer(0, 9), step)])
    elif kind == "ConstantOfShape":
        draw.add(kind, [draw.setting(np.array(draw.shape(), np.int64))])
    elif kind == "EyeLike":
        draw.add(kind, [draw.any((F32, I64, F64), rank=2)], k=draw.integer(-2, 2))
    elif kind == "CenterCropPad":
        a = draw.any((F32, I64, U8), rank=range(1, 4))
        draw.add(kind, [a, draw.setting(np.array([draw.integer(1, 7) for _ in a.shape]))])
    else:
        draw.add(kind, [draw.any(ALL)])
