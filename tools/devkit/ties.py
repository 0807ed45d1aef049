"""Why two right engines may be far apart on a dynamically quantised model: a value that lies at a tie of its quantisation falls to
the other step when a sum before it differs in its last bit, and the layers behind it make that large.

explain() shows it in two ways. Both engines give every DynamicQuantizeLinear's operand and result: where operands are equal to
rounding, results may differ by one step only, and only at ties; and nothing differs before the first tie. Then DSpark gets the other
engine's values behind every quantisation, and makes its own of what is in front of it: each stretch of the model must agree. Behind
an STFT the same is done, as the angle of a bin that holds next to nothing is any."""

import pathlib
import tempfile

import numpy as np
import onnx

from . import capi, float_lstm, run
from .models import TOLERANCE

EQUAL = 1e-5  # of the largest value: sums of f32 in another order
OWN = ".own"
NEAR = 5e-3  # of a step: what EQUAL is, in steps of 1/255


DYNAMIC = ("DynamicQuantizeLinear", "STFT")
STATIC = ("QuantizeLinear", "QGemm", *(f"QLinear{kind}" for kind in (
    "Conv", "MatMul", "Add", "Mul", "Softmax", "Concat", "AveragePool", "GlobalAveragePool", "LeakyRelu", "Sigmoid", "Where")))


def breaks(model, kinds=DYNAMIC):
    """Nodes behind which a last bit can decide much."""
    given = {value.name for value in [*model.graph.input, *model.graph.initializer]}
    return [node for node in model.graph.node if node.op_type in kinds and node.input[0] not in given]


def expose(model, names):
    known = {value.name for value in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(names) if name not in known)


def exposed(path, to):
    """The model with operands and results of those nodes among its outputs; [(x, q, scale, zero point)] of its quantisations."""
    model = onnx.load(path)
    found = breaks(model)
    expose(model, [name for node in found for name in (node.input[0], *node.output)])
    onnx.save(model, to)
    return [(node.input[0], *node.output) for node in found if node.op_type == "DynamicQuantizeLinear"]


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


def cut(path, to, values, kinds=DYNAMIC):
    """The model with the results of those nodes as inputs, which `values` gives; what it makes itself there is an output named
    NAME.own. Returns the new inputs."""
    model = onnx.load(path)
    given = {}
    for node in breaks(model, kinds):
        for k, name in enumerate(node.output):
            given[name] = values[name]
            kind = onnx.helper.np_dtype_to_tensor_dtype(values[name].dtype)
            model.graph.input.append(onnx.helper.make_tensor_value_info(name, kind, [None] * values[name].ndim))
            node.output[k] = name + OWN
    expose(model, [name + OWN for name in given])
    onnx.save(model, to)
    return given


def answers(path, feeds, isa):
    plan = path.with_suffix(".dsp")
    result = run.compile(path, plan)
    if result.code:
        raise RuntimeError(result.why())
    with capi.Session(plan, 1, isa) as session:
        return session.run(feeds)


def difference(got, want):
    """Largest difference over the largest value; infinite where shapes differ. A step of quantisation is none."""
    if got.shape != want.shape:
        return np.inf
    apart = np.max(np.abs(got.astype(np.float64) - want), initial=0)
    if got.dtype in (np.uint8, np.int8) and apart <= 1:
        return 0.0
    return float(apart / (np.max(np.abs(want), initial=0) or 1))


def stretches(source, feeds, want, isa=None, kinds=DYNAMIC):
    """The largest difference of any value between breaks, each stretch starting from `want`."""
    with tempfile.TemporaryDirectory(prefix="dspark-ties-") as place:
        pieces = pathlib.Path(place) / "pieces.onnx"
        got = answers(pieces, {**feeds, **cut(source, pieces, want, kinds)}, isa)
        return max(difference(value, want[name.removesuffix(OWN)]) for name, value in got.items())


def explain(path, feeds, reference, isa=None, tolerance=TOLERANCE):
    """(right, what to say). `reference` makes a runner of a model file: compare.ortRunner."""
    with tempfile.TemporaryDirectory(prefix="dspark-ties-") as place:
        source, model = (pathlib.Path(place) / f"{name}.onnx" for name in ("source", "model"))
        float_lstm.rewrite(path, source)
        rows = exposed(source, model)
        if not rows:
            return False, "nothing is quantised dynamically"
        want = reference(model)(feeds)
        good, why = compareSteps(rows, answers(model, feeds, isa), want)
        if not good:
            return good, why
        apart = stretches(model, feeds, want, isa)
        return apart <= tolerance, f"{why}; stretch by stretch {apart:.1e}"


def explainStatic(path, feeds, reference):
    """The same of QDQ and QOperator forms: from the other engine's bytes each stretch gives its bytes, to a step."""
    with tempfile.TemporaryDirectory(prefix="dspark-ties-") as place:
        model, exposing = onnx.load(path), pathlib.Path(place) / "model.onnx"
        found = breaks(model, STATIC)
        if not found:
            return False, "nothing is quantised by a constant scale"
        expose(model, [node.output[0] for node in found])
        onnx.save(model, exposing)
        apart = stretches(path, feeds, reference(exposing)(feeds), kinds=STATIC)
        return apart <= TOLERANCE, f"{len(found)} quantisations; stretch by stretch, to a step, {apart:.1e}"
