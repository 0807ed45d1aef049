"""Why two right engines may be far apart on a dynamically quantised model: a value that lies at a tie of its quantisation falls to
the other step when a sum before it differs in its last bit, and the layers behind it make that large.

explain() shows it in two ways. Both engines give every DynamicQuantizeLinear's operand and result: where operands are equal to
rounding, results may differ by one step only, and only at ties; and nothing differs before the first tie. Then DSpark gets the other
engine's bytes at every quantisation: each stretch of the model between quantisations must give the same operands, and the last one
the same results."""

import pathlib
import tempfile

import numpy as np
import onnx
from onnx import TensorProto

from . import capi, float_lstm, run
from .models import TOLERANCE

EQUAL = 1e-5  # of the largest value: sums of f32 in another order
NEAR = 5e-3  # of a step: what EQUAL is, in steps of 1/255


def exposed(path, to):
    """The model with those operands and results among its outputs; [(x, q, scale, zero point)] in the graph's order."""
    model = onnx.load(path)
    names = [(node.input[0], *node.output) for node in model.graph.node if node.op_type == "DynamicQuantizeLinear"]
    inputs = {value.name for value in model.graph.input}
    known = {*inputs, *(value.name for value in model.graph.output)}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(sum(names, ())) if name not in known)
    onnx.save(model, to)
    return [row for row in names if row[0] not in inputs]


def step(x, got, want, scale, zero):
    """(how many results differ, whether all of them lie at a tie) of one quantisation of equal operands."""
    differs = got != want
    places = x[differs].astype(np.float64) / scale + zero
    isTie = np.abs(places - np.floor(places) - 0.5) <= NEAR
    return int(differs.sum()), bool(isTie.all()) and bool((np.abs(got.astype(int) - want) <= 1).all())


def compareSteps(rows, got, want):
    """(right, what to say)"""
    tied = 0
    for at, (x, q, scale, zero) in enumerate(rows):
        same = got[x].shape == want[x].shape  # behind a tie also a length that the data tell may differ
        apart = np.max(np.abs(got[x] - want[x]), initial=0) / (np.max(np.abs(want[x]), initial=0) or 1) if same else np.inf
        if apart > EQUAL:
            if not tied:
                return False, f"operand {x} of quantisation {at + 1} of {len(rows)} differs by {apart:.1e} before any tie"
            continue
        count, good = step(want[x], got[q], want[q], want[scale], want[zero])
        if not good:
            return False, f"{q} differs in {count} places, not all at a tie"
        tied += count
    return tied > 0, f"{tied} values at a tie in {len(rows)} quantisations" if tied else "no value at a tie"


def cut(path, to, values):
    """The model without its DynamicQuantizeLinear: their operands are outputs, their results inputs. `values` tells ranks. Returns
    the names of the results."""
    model = onnx.load(path)
    inputs = {value.name for value in model.graph.input}
    found = [node for node in model.graph.node if node.op_type == "DynamicQuantizeLinear" and node.input[0] not in inputs]
    for node in found:
        model.graph.node.remove(node)
        for name, kind in zip(node.output, (TensorProto.UINT8, TensorProto.FLOAT, TensorProto.UINT8)):
            model.graph.input.append(onnx.helper.make_tensor_value_info(name, kind, [None] * values[name].ndim))
    operands, known = {node.input[0] for node in found}, {value.name for value in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in sorted(operands - known))
    onnx.save(model, to)
    return {name for node in found for name in node.output}


def answers(path, feeds, isa):
    plan = path.with_suffix(".dsp")
    result = run.compile(path, plan)
    if result.code:
        raise RuntimeError(result.why())
    with capi.Session(plan, 1, isa) as session:
        return session.run(feeds)


def difference(got, want, hasAngles):
    """Largest difference over the largest value; infinite where shapes differ."""
    if got.shape != want.shape:
        return np.inf
    apart = np.abs(got - want)
    if hasAngles:
        apart = np.minimum(apart, np.abs(apart - 2 * np.pi))
    return float(np.max(apart, initial=0) / (np.max(np.abs(want), initial=0) or 1))


def explain(path, feeds, reference, isa=None, hasAngles=False):
    """(right, what to say). `reference` makes a runner of a model file: compare.ortRunner. With `hasAngles`, a difference of a whole
    turn counts as none."""
    with tempfile.TemporaryDirectory(prefix="dspark-ties-") as place:
        source, model, pieces = (pathlib.Path(place) / f"{name}.onnx" for name in ("source", "model", "pieces"))
        float_lstm.rewrite(path, source)
        rows = exposed(source, model)
        if not rows:
            return False, "nothing is quantised dynamically"
        want = reference(model)(feeds)
        good, why = compareSteps(rows, answers(model, feeds, isa), want)
        if not good:
            return good, why
        results = cut(source, pieces, want)
        got = answers(pieces, {**feeds, **{name: want[name] for name in results}}, isa)
        apart = max(difference(got[name], want[name], hasAngles) for name in got)
        return apart <= TOLERANCE, f"{why}; from the same bytes at each of them {apart:.1e}"
