"""The models of docs/models.md: each with its file, inputs, and how an answer is judged.

Beside onnxruntime 1e-4 of the largest value is the bound, and where the engines are further apart an f64 evaluation decides
(devkit/compare.py). Quantised networks differ by steps where a value lies at a tie, so they have bounds of their own."""

import dataclasses
import functools
import json
import pathlib
import tempfile

import numpy as np
import onnx
import onnxruntime
from devkit import compare, inputs, models, ties, venv

EXPORTS = venv.CACHE / "exports"
LIGHT = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
# As relative L2: a step in a deep network of random weights is carried on by every layer behind it.
STATIC = 0.05
# Where MatMulNBits allows rows of 8 bits (accuracy_level 4), the error beside f32 rows may be so many times onnxruntime's own:
# rows are rounded in blocks of other sizes.
ROUNDED = 2


@dataclasses.dataclass
class Verdict:
    good: bool
    apart: float  # largest difference over largest value
    note: str = ""  # what else to say of the answer


class PackageModel:
    """A model of tools/devkit/models.py, from a wheel."""
    group, exporter = "Models in packages", ""

    def __init__(self, model):
        self.model, self.name, self.path = model, model.name, model.path

    @functools.cached_property
    def reference(self):
        return compare.Reference(self.model)

    @property
    def cases(self):
        return [case.frames[0] for case in inputs.cases(self.model)]

    def verdict(self, run):
        worst, good, note = 0.0, True, ""
        for index, case in enumerate(self.reference.cases):
            got = compare.runCase(run, case)
            agrees, detail = self.reference.judge(index, got)
            apart = compare.worst(got, self.reference.answers[index])
            if apart > self.model.tolerance or not agrees:
                note = detail
            worst, good = max(worst, apart), good and agrees
        return Verdict(good, worst, note)


class GraphFile:
    """A model file and feeds, compared output by output."""
    exporter = ""

    def __init__(self, group, name, path):
        self.group, self.name, self.path = group, name, path

    def wanted(self, feeds):
        return compare.ortRunner(self.path)(feeds)

    def judge(self, got, want, feeds):
        apart = compare.worst([got], [want])
        if apart <= compare.TOLERANCE:
            return Verdict(True, apart)
        good, detail = compare.judge(got, want, self.path, feeds)
        return Verdict(good, apart, detail)

    def verdict(self, run):
        found = [self.judge(run(feeds), self.wanted(feeds), feeds) for feeds in self.cases]
        notes = [one.note for one in found if one.note]
        return Verdict(all(one.good for one in found), max(one.apart for one in found), notes[0] if notes else "")


class LightModel(GraphFile):
    """A topology of the onnx package, its weights constants of one value."""

    def __init__(self, path):
        super().__init__("Topologies of the onnx package", path.stem, path)

    @functools.cached_property
    def cases(self):
        graph, random = onnx.load(self.path).graph, np.random.default_rng(1)
        weights = {weight.name for weight in graph.initializer}
        shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in graph.input}
        return [{name: random.random(shape, np.float32) for name, shape in shapes.items() if name not in weights}]


class Export(GraphFile):
    """What tools/exports wrote; about.json says how."""

    def __init__(self, folder):
        self.about = json.loads((folder / "about.json").read_text())
        super().__init__("Exports", self.about["name"], folder / "model.onnx")
        self.exporter, self.refused = self.about["exporter"], self.about.get("refused")

    @functools.cached_property
    def cases(self):
        return [dict(np.load(path)) for path in sorted(self.path.parent.glob("case-*.npz"))]

    def wanted(self, feeds):
        oracles = {"static": staticAnswers, "int4": exactAnswers}
        return oracles[self.about["kind"]](self.path, feeds) if self.about["kind"] in oracles else super().wanted(feeds)

    def judge(self, got, want, feeds):
        apart = compare.worst([got], [want])
        if self.about["kind"] == "static" and apart < np.inf:
            far = max(relative(got[name], want[name]) for name in want)
            if far <= STATIC:
                return Verdict(True, apart, f"relative L2 {far:.1e}")
            good, why = ties.explainStatic(self.path, feeds, lambda path: lambda given: staticAnswers(path, given))
            return Verdict(good, apart, f"relative L2 {far:.1e}; {why}")
        if self.about["kind"] == "dynamic" and compare.TOLERANCE < apart < np.inf:
            good, why = ties.explain(self.path, feeds, compare.ortRunner)
            return Verdict(good, apart, why)
        if self.about["kind"] == "int4" and compare.TOLERANCE < apart < np.inf:
            ours, theirs = (max(relative(one[name], want[name]) for name in want) for one in (got, super().wanted(feeds)))
            return Verdict(ours <= ROUNDED * theirs, apart, f"rows rounded to 8 bits: relative L2 {ours:.1e}, onnxruntime's {theirs:.1e}")
        return super().judge(got, want, feeds)


def relative(got, want):
    return float(np.linalg.norm(got - want) / (np.linalg.norm(want) or 1))


def staticAnswers(path, feeds):
    """onnxruntime without optimisations, which computes QDQ forms as they are spelled."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds)))


def exactAnswers(path, feeds):
    """onnxruntime with f32 activations: accuracy_level 4 of MatMulNBits lets it round them to 8 bits."""
    model = onnx.load(path)
    for node in model.graph.node:
        kept = [attribute for attribute in node.attribute if attribute.name != "accuracy_level"]
        del node.attribute[:]
        node.attribute.extend(kept)
    with tempfile.TemporaryDirectory() as place:
        exact = pathlib.Path(place) / "model.onnx"
        onnx.save(model, exact)
        return compare.ortRunner(exact)(feeds)


def everything():
    subjects = [PackageModel(model) for model in [*models.MODELS, *models.LARGE] if model.path.exists()]
    subjects += [LightModel(path) for path in sorted(LIGHT.glob("light_*.onnx"))]
    return subjects + [Export(path.parent) for path in sorted(EXPORTS.glob("*/about.json"))]
