"""Operators where the onnx package's reference implementation is not followed: it is wrong, or ONNX leaves the result open and
docs/semantics.md decides. Each says why. Floats come in f64."""

import functools
import itertools
import math

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops._op_list import load_op

from .. import exact


class Div(OpRun):
    """Open: integers by zero give 0."""

    def _run(self, a, b):
        if a.dtype.kind == "f":
            return (np.divide(a, b),)
        safe = np.where(b == 0, b.dtype.type(1), b)
        quotient = np.floor_divide(a, safe)
        quotient = quotient + ((np.remainder(a, safe) != 0) & ((a < 0) != (safe < 0))).astype(quotient.dtype)
        return (np.where(b == 0, quotient.dtype.type(0), quotient).astype(a.dtype),)


class Erf(OpRun):
    """It goes through f32."""

    def _run(self, x):
        return (np.vectorize(math.erf, otypes=[np.float64])(x),)


class Gelu(OpRun):
    """Its function body calls that Erf, and has f32 constants."""

    def _run(self, x, approximate="none"):
        if approximate == "tanh":
            return (0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),)
        return (0.5 * x * np.vectorize(math.erfc, otypes=[np.float64])(-x / math.sqrt(2)),)


class Softplus(OpRun):
    """It loses what is small beside 1."""

    def _run(self, x):
        return (np.logaddexp(0, x),)


class Softsign(OpRun):
    """It raises on scalars."""

    def _run(self, x):
        return (np.asarray(x / (1 + np.abs(x))),)


class LRN(OpRun):
    """It counts channels by the size of the batch, and is for images only."""

    def _run(self, x, alpha=None, beta=None, bias=None, size=None):
        padded = np.pad(x * x, [(0, 0), ((size - 1) // 2, size // 2), *[(0, 0)] * (x.ndim - 2)])
        total = sum(padded[:, k : k + x.shape[1]] for k in range(size))
        return (x / (bias + alpha / size * total) ** beta,)


class GlobalMaxPool(OpRun):
    """It takes two axes, whatever the rank."""

    def _run(self, x):
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


class LpNormalization(OpRun):
    """It sums without absolute values for p = 1."""

    def _run(self, x, axis=None, p=None):
        norm = np.abs(x).sum(axis, keepdims=True) if p == 1 else np.sqrt((x * x).sum(axis, keepdims=True))
        return (np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm)),)


class MeanVarianceNormalization(OpRun):
    """Its function body has f32 constants, so it cannot be asked in f64."""

    def _run(self, x, axes=None):
        axes = tuple(axes or (0, 2, 3))
        centred = x - x.mean(axes, keepdims=True)
        return (centred / (np.sqrt((centred * centred).mean(axes, keepdims=True)) + 1e-9),)


class GroupNormalization(OpRun):
    """Its function body computes in f32, so it cannot be asked in f64."""

    def _run(self, x, scale, bias, epsilon=1e-5, num_groups=None, stash_type=1):
        rows = x.reshape(x.shape[0], num_groups, -1)
        centred = rows - rows.mean(-1, keepdims=True)
        form = (1, -1, *[1] * (x.ndim - 2))
        normal = (centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + epsilon)).reshape(x.shape)
        return (normal * scale.reshape(form) + bias.reshape(form),)


def narrow(kind):
    """Its sums of narrow integers are wide, as NumPy's."""

    class Reduction(load_op("", kind, 18)):
        def _run(self, data, *rest, **attributes):
            return tuple(np.asarray(value).astype(data.dtype) for value in super()._run(data, *rest, **attributes))

    Reduction.__name__ = kind
    return Reduction


class ReduceLogSumExp(OpRun):
    """It gives NaN where an operand is infinite."""

    def _run(self, x, axes=None, keepdims=1, noop_with_empty_axes=0):
        if axes is None or not len(axes):
            if noop_with_empty_axes:
                return (x,)
            axes = range(x.ndim)
        axes, keep = tuple(int(k) for k in axes), bool(keepdims)
        if not x.size:
            return (np.full(np.sum(x, axis=axes, keepdims=keep).shape, -np.inf),)
        top = x.max(axes, keepdims=True)
        top = np.where(np.isfinite(top), top, 0)
        return (np.asarray(np.log(np.exp(x - top).sum(axes, keepdims=keep)) + (top if keep else top.reshape(np.sum(x, axis=axes).shape))),)


class Pool(OpRun):
    """SAME_LOWER and dilations given as ones lead it to other sizes. Windows are those of docs/semantics.md."""

    def windows(self, x, auto_pad=None, ceil_mode=None, dilations=None, kernel_shape=None, pads=None, strides=None):
        """(what is input (1), padding (0) or behind it (NaN), padding by axis, steps of `views`, output sizes)."""
        rank = x.ndim - 2
        strides, dilations = strides or [1] * rank, dilations or [1] * rank
        spans = [(k - 1) * d + 1 for k, d in zip(kernel_shape, dilations)]
        pads = exact.Conv.resolvePads(auto_pad, x.shape[2:], spans, strides, pads or [0] * 2 * rank)
        if auto_pad == "VALID":
            pads = [0] * 2 * rank
        sizes, more = [], []
        for n, low, high, span, step in zip(x.shape[2:], pads[:rank], pads[rank:], spans, strides):
            room = n + low + high - span
            count = room // step + 1
            count += bool(ceil_mode and room % step and count * step < n + low)
            sizes.append(count)
            more.append(max((count - 1) * step + span - n - low - high, 0))
        inside = np.pad(np.pad(np.ones(x.shape[2:]), list(zip(pads[:rank], pads[rank:]))), [(0, n) for n in more], constant_values=np.nan)
        return inside, list(zip(pads[:rank], [a + b for a, b in zip(pads[rank:], more)])), (dilations, strides, kernel_shape), sizes

    @staticmethod
    def views(array, steps, sizes):
        dilations, strides, kernel = steps
        for at in itertools.product(*(range(k) for k in kernel)):
            yield array[(..., *(slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in zip(at, dilations, sizes, strides)))]


class MaxPool(Pool):
    def _run(self, x, storage_order=None, **attributes):
        _, pads, steps, sizes = self.windows(x, **attributes)
        padded = np.pad(x, [(0, 0), (0, 0), *pads], constant_values=-np.inf)
        return (functools.reduce(np.maximum, self.views(padded, steps, sizes)),)


class AveragePool(Pool):
    def _run(self, x, count_include_pad=None, **attributes):
        inside, pads, steps, sizes = self.windows(x, **attributes)
        counted = ~np.isnan(inside) if count_include_pad else inside == 1
        total = sum(self.views(np.pad(x, [(0, 0), (0, 0), *pads]), steps, sizes))
        return (total / sum(self.views(counted.astype(float), steps, sizes)),)


class LpPool(Pool):
    def _run(self, x, p=2, **attributes):
        _, pads, steps, sizes = self.windows(x, **attributes)
        powers = np.pad(np.abs(x) ** p, [(0, 0), (0, 0), *pads])
        return (sum(self.views(powers, steps, sizes)) ** (1 / p),)


class ConvTranspose(OpRun):
    """It mixes up groups of several channels."""

    def _run(self, x, w, b=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, output_padding=None, output_shape=None, pads=None,
             strides=None):
        rank = x.ndim - 2
        strides, dilations, group, pads = strides or [1] * rank, dilations or [1] * rank, group or 1, pads or [0] * 2 * rank
        full = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(x.shape[2:], strides, w.shape[2:], dilations)]
        perGroup, inputs = w.shape[1], x.shape[1] // group
        result = np.zeros((x.shape[0], group * perGroup, *full), x.dtype)
        for g, at in itertools.product(range(group), itertools.product(*(range(k) for k in w.shape[2:]))):
            place = tuple(slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in zip(at, dilations, x.shape[2:], strides))
            part = np.einsum("nc...,cm->nm...", x[:, g * inputs : (g + 1) * inputs], w[(slice(g * inputs, (g + 1) * inputs), slice(None), *at)])
            result[(slice(None), slice(g * perGroup, (g + 1) * perGroup), *place)] += part
        inside = tuple(slice(low, n - high) for low, high, n in zip(pads[:rank], pads[rank:], full))
        return (result[(slice(None), slice(None), *inside)],)


class QLinearMatMul(OpRun):
    """It adds the zero point before it rounds, so that ties go to the other side."""

    def _run(self, a, aScale, aZero, b, bScale, bZero, yScale, yZero):
        total = np.matmul(a.astype(np.int64) - aZero, b.astype(np.int64) - bZero)
        limits = np.iinfo(yZero.dtype)
        return (np.clip(np.rint(total * (aScale * bScale / yScale)) + yZero, limits.min, limits.max).astype(yZero.dtype),)


class Loop(OpRun):
    """It joins scan outputs along their first axis instead of stacking them, and takes a missing condition for false."""

    def need_context(self):
        return True

    def _run(self, trips, condition, *carried, context=None, body=None, attributes=None):
        names, scans, state = self.body.input_names, [], list(carried)
        count = len(self.body.output_names) - 1 - len(state)
        step, going = 0, True if condition is None else bool(condition)
        while going and (trips is None or step < trips):
            feeds = dict(context) | dict(zip(names, [np.array(step), np.array(going), *state]))
            going, *results = self._run_body(feeds, attributes=attributes)
            state, scans, step = results[: len(state)], scans + [results[len(state) :]], step + 1
        return (*state, *(np.stack([row[k] for row in scans]) for k in range(count)))


CLASSES = {kind.__name__: kind for kind in (
    Div, Erf, Gelu, Softplus, Softsign, LRN, GlobalMaxPool, LpNormalization, MeanVarianceNormalization, GroupNormalization, ReduceLogSumExp,
    MaxPool, AveragePool, LpPool, ConvTranspose, Loop, QLinearMatMul, exact.Conv, exact.GatherElements,
    *map(narrow, ("ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceProd")))}
