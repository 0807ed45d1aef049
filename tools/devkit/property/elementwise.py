"""Recipes: operators that go element by element, comparisons, conversions."""

import numpy as np
from onnx import helper

from .draw import recipe
from .values import ALL, BOOL, F16, F32, F64, FLOATS, INTEGERS, NUMBERS, SIGNED, UNSIGNED

STEADY = ["Abs", "Neg", "Relu", "Identity"]
JUMPY = ["Floor", "Ceil", "Round", "Sign"]  # only of exact operands: a rounding may carry a value over the step
SMOOTH = ["Exp", "Log", "Sqrt", "Reciprocal", "Sigmoid", "Tanh", "Erf", "Sin", "Cos", "Softplus", "Softsign", "HardSwish", "Mish", "Atan",
          "Sinh", "Asinh", "Cosh", "Acosh", "Atanh", "Asin", "Acos", "Tan"]
SHAPED = {"Elu": {"alpha": 0.75}, "Selu": {}, "Celu": {"alpha": 0.5}, "LeakyRelu": {"alpha": 0.25}, "HardSigmoid": {"alpha": 0.25, "beta": 0.5},
          "Gelu": {"approximate": "tanh"}}
EXPANDED = ("HardSwish", "Mish")  # evaluated by their function bodies, which have f32 constants
COMPARE = ["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"]


@recipe(3)
def steady(draw):
    kind = draw.pick(STEADY)
    types = {"Abs": NUMBERS, "Neg": FLOATS + SIGNED, "Relu": FLOATS + SIGNED, "Identity": ALL}[kind]
    draw.add(kind, [draw.any(types)])


@recipe(1)
def jumpy(draw):
    kind = draw.pick(JUMPY)
    draw.add(kind, [draw.any(NUMBERS if kind == "Sign" else FLOATS, exact=True)])


@recipe(4)
def smooth(draw):
    kind = draw.pick(SMOOTH)
    draw.add(kind, [draw.any((F32, F16) if kind in EXPANDED else FLOATS)], rounds=True)


@recipe(2)
def shaped(draw):
    kind = draw.pick(list(SHAPED))
    if kind != "Gelu" or draw.opset >= 20:
        types = (F32, F16) if kind in EXPANDED else (F32, F16, F64)
        least = 1e-7 if kind == "Gelu" else 0.0  # kernels/common/vector_math.h states its absolute error
        draw.add(kind, [draw.any(types)], rounds=True, least=least, **(SHAPED[kind] if draw.chance(0.6) else {}))


@recipe(0.5)
def jumpyShaped(draw):
    kind = draw.pick(["ThresholdedRelu", "Shrink"])
    draw.add(kind, [draw.any((F32, F16), exact=True)], **({"alpha": 1.5} if kind == "ThresholdedRelu" else {"lambd": 1.0, "bias": 0.25}))


@recipe(0.5)
def test(draw):
    kind = draw.pick(["IsNaN", "IsInf", "Not", "BitwiseNot"])
    types = {"Not": (BOOL,), "BitwiseNot": INTEGERS, "IsInf": (F32, F64), "IsNaN": FLOATS}[kind]
    draw.add(kind, [draw.any(types, exact=True)])


@recipe(8)
def arithmetic(draw):
    kind = draw.pick(["Add", "Add", "Sub", "Mul", "Mul", "Div"])
    a = draw.any(NUMBERS)
    b = draw.partner(a)
    draw.add(kind, [a, b] if kind == "Div" or draw.chance(0.7) else [b, a], rounds=kind == "Div")


@recipe(2)
def variadic(draw):
    kind = draw.pick(["Max", "Min", "Sum", "Mean"])
    a = draw.any(NUMBERS if kind in ("Max", "Min") else FLOATS)
    others = [draw.partner(a) for _ in range(draw.integer(0, 2))]
    draw.add(kind, [a, *others], rounds=kind == "Mean")


@recipe(1)
def power(draw):
    a = draw.any((F32, F64, F16))
    exponent = draw.pick([draw.give(np.array(draw.pick([2, 3, 0.5, -1, 0, 1]), a.dtype)), draw.partner(a, low=-2, high=3, odd=False)])
    draw.add("Pow", [a, exponent], rounds=True)


@recipe(1)
def modulo(draw):
    a = draw.any(INTEGERS + (F32, F16, F64), exact=True, odd=False)
    b = draw.fresh(a.dtype, draw.broadcastable(a.shape), low=1, odd=False)
    draw.add("Mod", [a, b], fmod=1 if a.dtype in FLOATS else draw.pick([0, 1]))


@recipe(2)
def logic(draw):
    if draw.chance(0.5):
        a = draw.any((BOOL,))
        draw.add(draw.pick(["And", "Or", "Xor"]), [a, draw.partner(a)])
    else:
        a = draw.any(INTEGERS)
        draw.add(draw.pick(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]), [a, draw.partner(a)])


@recipe(0.5)
def shift(draw):
    a = draw.any(UNSIGNED)
    b = draw.fresh(a.dtype, draw.broadcastable(a.shape), low=0, high=7, odd=False)
    draw.add("BitShift", [a, b], direction=draw.pick(["LEFT", "RIGHT"]))


@recipe(3)
def compare(draw):
    kind = draw.pick(COMPARE)
    a = draw.any(ALL if kind == "Equal" else NUMBERS, exact=True)
    draw.add(kind, [a, draw.partner(a, exact=True)])


@recipe(3)
def where(draw):
    a = draw.any(ALL)
    b = draw.partner(a)
    condition = draw.any((BOOL,), fits=lambda v: broadcasts(v, a)) if draw.chance(0.5) else None
    if condition is None or not broadcasts(condition, a):
        condition = draw.fresh(BOOL, draw.broadcastable(a.shape))
    draw.add("Where", [condition, a, b])


def broadcasts(a, b):
    try:
        return np.broadcast_shapes(a.shape, b.shape) is not None
    except ValueError:
        return False


@recipe(1.5)
def clip(draw):
    a = draw.any(NUMBERS)
    low, high = (draw.give(np.array(v, a.dtype)) if draw.chance(0.8) else None for v in (draw.integer(0, 2), draw.integer(3, 6)))
    draw.add("Clip", [a, low, high])


@recipe(0.7)
def prelu(draw):
    a = draw.any((F32, F64, F16))
    slope = draw.fresh(a.dtype, [1 if draw.chance(0.3) else n for n in a.shape[draw.integer(0, a.array.ndim) :]], odd=False)
    draw.add("PRelu", [a, slope])


@recipe(4)
def cast(draw):
    """Out of range is undefined in ONNX: test/e2e/semantics asks for it."""
    to = draw.pick(ALL)
    steps = to not in FLOATS
    a = draw.any(ALL, exact=steps)
    if to in INTEGERS and a.dtype in FLOATS:
        limits = np.iinfo(to)
        if not np.all(np.isfinite(a.array)) or np.any(a.wide() < limits.min) or np.any(a.wide() > min(limits.max, 2**31)):
            return
    kept = to if to in FLOATS else None
    if draw.chance(0.2):
        draw.add("CastLike", [a, draw.give(np.zeros(1, to))], dtype=kept)
    else:
        draw.add("Cast", [a], to=helper.np_dtype_to_tensor_dtype(to), dtype=kept)
