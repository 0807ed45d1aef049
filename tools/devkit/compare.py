"""Agreement with onnxruntime: max|a-b| <= 1e-4 * max|b| per output (a few models state another factor), and the same
reading (classes, text)."""

import numpy as np
import onnxruntime

from . import exact, inputs, ties
from .models import TOLERANCE


def session(path, threads=1):
    """`path` may also be the model's bytes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    # Without it, onnxruntime's products of u8 and s8 saturate on machines that have AVX2 and no VNNI.
    options.add_session_config_entry("session.x64quantprecision", "1")
    source = path if isinstance(path, bytes) else str(path)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def ortRunner(path):
    """A function from feeds to named outputs."""
    opened = session(path)
    names = [output.name for output in opened.get_outputs()]
    return lambda feeds: dict(zip(names, opened.run(names, feeds)))


def runCase(runner, case):
    """Runs the frames of a case, carrying state, and returns the outputs of each frame."""
    state, answers = {}, []
    for frame in case.frames:
        answers.append(runner({**state, **frame}))
        state = {target: answers[-1][source] for source, target in case.carry.items()}
    return answers


def distance(got, want):
    """max|a-b| / max|b| of one output; infinite where shape, type or NaNs differ."""
    if got.shape != want.shape or got.dtype.kind != want.dtype.kind or not np.array_equal(np.isnan(got), np.isnan(want)):
        return float("inf")
    scale = np.nanmax(np.abs(want), initial=0)
    return float(np.nanmax(np.abs(got.astype(np.float64) - want), initial=0)) / (float(scale) or 1.0)


def worst(got, want):
    return max(distance(g[name], w[name]) for g, w in zip(got, want) for name in w)


def judge(got, want, path, feeds):
    """(agrees, what to say) of one run's outputs. Where the engines are further apart than the tolerance, the f64 evaluation
    of the model at `path` decides."""
    apart = worst([got], [want])
    if apart <= TOLERANCE:
        return True, f"{apart:.1e}"
    truth = exact.outputs(exact.evaluator(path), feeds)
    ours, theirs = worst([got], [truth]), worst([want], [truth])
    return ours <= TOLERANCE, f"{apart:.1e} from onnxruntime; from the f64 evaluation {ours:.1e}, onnxruntime {theirs:.1e}"


class Reference:
    """onnxruntime's answers for the cases of one model, and an f64 evaluation for when it may itself be off."""

    def __init__(self, model, first=False):
        """`first`: only the first case."""
        self.model = model
        self.cases = inputs.cases(model)[:1] if first else inputs.cases(model)
        self.characters = inputs.alphabet(model) if model.kind == "rec" else None
        runner = ortRunner(model.path)
        self.answers = [runCase(runner, case) for case in self.cases]
        self.exact, self.ties = {}, {}

    def reading(self, answers):
        return inputs.reading(self.model, answers[-1], self.characters)

    def exactAnswers(self, index):
        if index not in self.exact:
            evaluator = exact.evaluator(self.model.path)
            self.exact[index] = runCase(lambda feeds: exact.outputs(evaluator, feeds), self.cases[index])
        return self.exact[index]

    def explained(self, index, isa):
        if (index, isa) not in self.ties:
            feeds = self.cases[index].frames[0]
            self.ties[index, isa] = ties.explain(self.model.path, feeds, ortRunner, isa, self.model.tolerance)
        return self.ties[index, isa]

    def verdict(self, name, index, got, isa=None):
        """(agrees, name, detail), the arguments of Checks.report."""
        agrees, detail = self.judge(index, got, isa)
        return agrees, name, detail

    def judge(self, index, got, isa=None):
        """(agrees, what to say) of answers to case `index`, computed at a level. Where the two engines are further apart than the
        tolerance, the f64 evaluation decides: ours must be within the tolerance of it, and nearer than onnxruntime. In a
        dynamically quantised model (devkit/ties.py) the first difference must be a tie."""
        want = self.answers[index]
        missing = [name for name in want[0] if name not in got[0]]
        if missing:
            return False, f"no output {missing[0]}"
        said, expected = self.reading(got), self.reading(want)
        if said != expected and not self.model.isDynamic:
            return False, f"reads {said}, onnxruntime {expected}"
        apart = worst(got, want)
        if apart <= self.model.tolerance:
            return True, f"{apart:.1e}" + ("" if said is None else f" {said}")
        if self.model.isDynamic:  # even lengths may differ behind a tie
            good, why = self.explained(index, isa)
            return good, f"{apart:.1e} from onnxruntime; {why}"
        if apart == float("inf"):
            return False, "shape, type or NaNs differ"
        truth = self.exactAnswers(index)
        ours, theirs = worst(got, truth), worst(want, truth)
        good = ours <= self.model.tolerance and ours <= theirs
        return good, f"{apart:.1e} from onnxruntime; from the f64 evaluation {ours:.1e}, onnxruntime {theirs:.1e}"
