"""Why two right engines may be far apart on a dynamically quantised model: a value that lies at a tie of its quantisation falls to
the other step when a sum before it differs in its last bit, and the layers behind it make that large.

explain() shows it: both engines give every DynamicQuantizeLinear's operand and result. Where operands are equal to rounding, results
may differ by one step only, and only at ties; and nothing differs before the first tie."""

import pathlib
import tempfile

import numpy as np
import onnx

from . import capi, run

EQUAL = 1e-5  # of the largest value: sums of f32 in another order
NEAR = 5e-3  # of a step: what EQUAL is, in steps of 1/255


def exposed(path, to):
    """The model with those operands and results as its outputs; [(x, q, scale, zero point)] in the graph's order."""
    model = onnx.load(path)
    names = [(node.input[0], *node.output) for node in model.graph.node if node.op_type == "DynamicQuantizeLinear"]
    del model.graph.output[:]
    inputs = {value.name for value in model.graph.input}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(sum(names, ())) if name not in inputs)
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
        apart = np.max(np.abs(got[x] - want[x]), initial=0) / (np.max(np.abs(want[x]), initial=0) or 1)
        if apart > EQUAL:
            if not tied:
                return False, f"operand {x} of quantisation {at + 1} of {len(rows)} differs by {apart:.1e} before any tie"
            continue
        count, good = step(want[x], got[q], want[q], want[scale], want[zero])
        if not good:
            return False, f"{q} differs in {count} places, not all at a tie"
        tied += count
    return tied > 0, f"{tied} values at a tie in {len(rows)} quantisations" if tied else "no value at a tie"


def explain(path, feeds, reference, isa=None):
    """`reference` makes a runner of a model file: compare.ortRunner."""
    with tempfile.TemporaryDirectory(prefix="dspark-ties-") as place:
        model, plan = pathlib.Path(place) / "model.onnx", pathlib.Path(place) / "model.dsp"
        rows = exposed(path, model)
        result = run.compile(model, plan)
        if result.code or not rows:
            return False, result.why() if result.code else "nothing is quantised dynamically"
        with capi.Session(plan, 1, isa) as session:
            return compareSteps(rows, session.run(feeds), reference(model)(feeds))
