"""A value of a drawn graph: what it is worth, and how far from that an engine's answer may be.

Exact values (integers, bools, floats that no step had to round) must be met bit for bit, apart from the sign of zero. For the others
an f64 evaluation is the truth and `slack` the distance allowed. It follows from the truth's sensitivity: inputs are moved by their own
slack and by kUnits units in the last place, twice in random directions and once every other element up and down (of few elements, random
ones may all go the same way), and the result may be off by kFactor times what moves it furthest, plus kUnits units of its largest
element. A backward stable computation of f32 sums of up to a thousand terms stays
well inside."""

import dataclasses

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)
F16, F32, F64 = (np.dtype(kind) for kind in (np.float16, np.float32, np.float64))
FLOATS = (F32, F16, BF16, F64)
UNIT = {F64: 2.0**-53, F32: 2.0**-24, F16: 2.0**-11, BF16: 2.0**-8}  # half a unit in the last place of 1
SIGNED = tuple(np.dtype(kind) for kind in ("i8", "i4", "i2", "i1"))
UNSIGNED = tuple(np.dtype(kind) for kind in ("u1", "u2", "u4", "u8"))
INTEGERS = SIGNED + UNSIGNED
BOOL, I64, I32, U8, I8 = (np.dtype(kind) for kind in ("?", "i8", "i4", "u1", "i1"))
NUMBERS = FLOATS + INTEGERS
ALL = NUMBERS + (BOOL,)
kUnits, kFactor = 4, 6


@dataclasses.dataclass(eq=False)
class Value:
    name: str
    array: np.ndarray  # the truth rounded to its type
    truth: np.ndarray = None  # f64; None where `array` is exact
    slack: float = 0.0
    constant: bool = False  # an initializer, if no node makes it
    dims: tuple = ()  # of an input: a number or a symbol per axis
    fixed: bool = False  # a setting (scales, limits): a rounding of it would be another question

    @property
    def exact(self):
        return self.truth is None

    @property
    def shape(self):
        return self.array.shape

    @property
    def dtype(self):
        return self.array.dtype

    def wide(self):
        """The array to evaluate with: floats in f64."""
        if not self.exact:
            return self.truth
        return self.array.astype(F64) if self.dtype in FLOATS else self.array

    def moved(self, sign):
        """Like wide(), moved by what an engine may be off and by a few roundings; `sign` makes directions for a shape."""
        wide = self.wide()
        if self.dtype not in FLOATS or self.fixed:
            return wide
        with np.errstate(all="ignore"):
            by = np.maximum(self.slack, kUnits * UNIT[self.dtype] * np.abs(wide)) * sign(wide.shape)
        return np.where(np.isfinite(wide), wide + np.where(np.isfinite(by), by, 0), wide)

    def fault(self, got):
        """What is wrong with an engine's answer, or ""."""
        if got.shape != self.shape or got.dtype != self.dtype:
            return f"is {got.dtype}{list(got.shape)}, expected {self.dtype}{list(self.shape)}"
        if self.dtype not in FLOATS:
            good = got == self.array
        else:
            want, wide = self.wide(), got.astype(F64)
            with np.errstate(all="ignore"):
                good = (want == wide) | (np.isnan(want) & np.isnan(wide)) | (np.abs(want - wide) <= self.slack)
        if np.all(good):
            return ""
        at = tuple(int(axis[0]) for axis in np.nonzero(~np.atleast_1d(good)))
        at = at if self.shape else ()
        return (f"{np.size(good) - np.count_nonzero(good)} of {np.size(good)} differ, first at {list(at)}: {got[at]}, expected "
                f"{self.wide()[at]}" + (f" within {self.slack:.1e}" if self.slack else ""))


def alternating(shape):
    """1, -1, 1, ..."""
    return 1.0 - 2.0 * (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape)


def furthest(truth, operands, evaluate, random):
    """How far moving the operands moves a result; infinite where it changes its shape, or what is finite."""
    far, anyhow = 0.0, lambda shape: random.choice([-1.0, 1.0], shape)
    for sign in (anyhow, anyhow, alternating):
        moved = evaluate([value.moved(sign) for value in operands])
        if moved.shape != truth.shape or not np.array_equal(np.isfinite(moved), np.isfinite(truth)):
            return np.inf
        with np.errstate(all="ignore"):
            far = max(far, float(np.max(np.abs(moved - truth), initial=0, where=np.isfinite(truth))))
    return far


def computed(name, truth, dtype, operands, evaluate, rounds, allowed, random):
    """The Value of a node's float output with this f64 truth; None where the question has no steady answer. `evaluate` gives the truth for
    other operands, `rounds` says that results are never exact, `allowed` is a factor and a least value of the slack."""
    with np.errstate(all="ignore"):
        array = truth.astype(dtype)
        same = (array.astype(F64) == truth) | np.isnan(truth)
    if not np.array_equal(np.isfinite(truth), np.isfinite(array)):
        return None  # it overflows the type
    finite = np.abs(truth[np.isfinite(truth)])
    size = float(finite.max(initial=0))
    short = size <= 2.0**10 and np.all(finite * 2**8 % 1 == 0)  # sums in any order are exact in f32
    if not rounds and short and np.all(same) and all(value.exact for value in operands):
        return Value(name, array)
    slack = allowed[0] * (kUnits * UNIT[dtype] * size + kFactor * furthest(truth, operands, evaluate, random))
    slack += float(ml_dtypes.finfo(dtype).smallest_subnormal)  # below the normal numbers a unit no longer shrinks with the value
    slack = max(slack, allowed[1])
    steady = slack <= (0.02 if dtype == F32 else 0.2) * size + 1e-30
    return Value(name, array, truth, slack) if steady else None
