"""What bench/models runs: an architecture of the zoo at full size, or a real model on the first of its test inputs. Both
know their model file, their input for a batch size, and how to judge an answer."""

import dataclasses
import pathlib

import numpy as np
from devkit import compare, models, quantized_models, venv, zoo


def relativeErrors(job, answers):
    """Of each engine's answers, the largest relative L2 distance of an output from that of onnxruntime in f32 without its
    optimisations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(job.model), options)
    names = [output.name for output in session.get_outputs()]
    wanted = dict(zip(names, session.run(names, job.feeds)))
    return {engine: max(float(np.linalg.norm(found[name] - want) / np.linalg.norm(want)) for name, want in wanted.items())
            for engine, found in answers.items()}


@dataclasses.dataclass
class ZooWorkload:
    architecture: zoo.Architecture
    style: str
    graph: zoo.Graph | None = None
    model: pathlib.Path | None = None

    @property
    def name(self):
        return self.architecture.name

    def prepare(self):
        """The model file; written once per version of the zoo."""
        self.graph = self.architecture.graph("full", self.style)
        self.model = self.architecture.file("full", self.style, venv.CACHE / "zoo")
        return self.model

    def feeds(self, batch, seed=0):
        return self.architecture.feeds(self.graph, "full", batch, seed)

    def judge(self, answers, job):
        return compare.judge(answers, compare.ortRunner(self.model)(job.feeds), self.model, job.feeds)

    @staticmethod
    def batchOf(job):
        return job.dims["batch"]


@dataclasses.dataclass
class QuantizedWorkload(ZooWorkload):
    """A zoo architecture in a form of onnxruntime.quantization, calibrated on normal numbers: NAME@FORM."""
    form: str = ""

    @property
    def name(self):
        return f"{self.architecture.name}@{self.form}"

    def prepare(self):
        source = super().prepare()
        self.model = venv.CACHE / "quantized" / f"{source.stem}-{self.form}.onnx"
        if not self.model.exists():
            self.model.parent.mkdir(parents=True, exist_ok=True)
            part = self.model.with_suffix(".part")
            quantized_models.quantize(source, part, self.form, [self.architecture.feeds(self.graph, seed=k) for k in (1, 2)])
            part.rename(self.model)
        return self.model

    def judge(self, answers, job):
        """Two right computations round ties differently, and a deep network hands every such step on: the bound is on
        the relative L2 distance from onnxruntime's answer without its optimisations."""
        worst = relativeErrors(job, {"": answers})[""]
        return worst <= 0.05, f"relative L2 distance {worst:.1e}"


@dataclasses.dataclass
class RealWorkload:
    model: models.Model
    reference: compare.Reference | None = None

    @property
    def name(self):
        return self.model.name

    def prepare(self):
        self.reference = compare.Reference(self.model, first=True)
        return self.model.path

    def feeds(self, batch):
        """The first frame of the first case; other batch sizes are the zoo's business."""
        return self.reference.cases[0].frames[0] if batch == 1 else None

    def judge(self, answers, job):
        """A case of several frames is judged by its first here; test/e2e/models runs them all."""
        return compare.judge(answers, self.reference.answers[0][0], self.model.path, job.feeds)

    @staticmethod
    def batchOf(job):
        return 1


# Real models that are a target of their own; the others are further versions of the same families.
REAL = ["magika", "ppocr-v4-det", "ppocr-v4-rec", "ppocr-v2-cls", "silero", "silero-op18", "minilm", "basic-pitch"]


def chosen(names, style):
    architectures = {a.name: ZooWorkload(a, style) for a in zoo.ARCHITECTURES}
    if not names:
        return [*architectures.values(), *(RealWorkload(models.byName(name)) for name in REAL)]

    def named(name):
        base, _, form = name.partition("@")
        if form:
            return QuantizedWorkload(zoo.byName(base), style, form=form)
        return architectures.get(name) or RealWorkload(models.byName(name))

    return [named(name) for name in names]
