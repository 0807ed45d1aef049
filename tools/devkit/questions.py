"""Questions with a known right answer: small graphs, operands, and the outputs that follow from the operators' definitions, computed
by other means. Used by test/e2e/reports and test/e2e/semantics."""

import argparse
import pathlib
import re
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

from . import checks, compare, run

MS, ML, PREVIEW = "com.microsoft", "ai.onnx.ml", "ai.onnx.preview"
REFUSED = "refused"  # what is expected where the call breaks the operator's rules


def op(kind, inputs, outputs="y", domain="", **attributes):
    """A node; names separated by blanks, "-" for an operand left out."""
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(kind, names, outputs.split(), name="node", domain=domain, **attributes)


def f32(*values, shape=None):
    array = np.array(values, np.float32)
    return array if shape is None else array.reshape(shape)


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


class Question:
    """Nodes, operands by name, and the right outputs by name (or REFUSED). `within` is relative to the largest value."""

    def __init__(self, nodes, feeds, want, within=0.0, opset=21, constants=(), either=False):
        self.nodes, self.feeds, self.want, self.within, self.opset = nodes if isinstance(nodes, list) else [nodes], feeds, want, within, opset
        self.constants = constants  # operands that are never inputs
        self.either = either  # the right answer or a refusal

    def model(self, asConstants):
        fixed = list(self.feeds) if asConstants else list(self.constants)
        kind = lambda array: helper.np_dtype_to_tensor_dtype(array.dtype)
        inputs = [helper.make_tensor_value_info(name, kind(array), array.shape) for name, array in self.feeds.items() if name not in fixed]
        names = ["y"] if self.want is REFUSED else list(self.want)
        graph = helper.make_graph(self.nodes, "question", inputs, [onnx.ValueInfoProto(name=name) for name in names],
                                  [numpy_helper.from_array(self.feeds[name], name) for name in fixed])
        opsets = [helper.make_opsetid("", self.opset), *(helper.make_opsetid(domain, since) for domain, since in ((MS, 1), (ML, 3), (PREVIEW, 1)))]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10), {k: v for k, v in self.feeds.items() if k not in fixed}

    def difference(self, got):
        """What is wrong with these outputs, or ""."""
        return next(filter(None, (self.fault(name, got.get(name)) for name in self.want)), "")

    def fault(self, name, got):
        want = self.want[name]
        if got is None:
            return f"no output {name}"
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"{name} is {got.dtype} {got.shape}, expected {want.dtype} {want.shape}"
        isFloat = want.dtype.kind not in "iub"
        ours, right = (array.astype(np.float64) if isFloat else array for array in (got, want))
        apart = compare.distance(ours, right) if self.within else float(not np.array_equal(ours, right, equal_nan=isFloat))
        if apart <= self.within:
            return ""
        at = np.flatnonzero(~((ours == right) | (isFloat & (ours != ours) & (right != right))).ravel())[:8]
        return f"{name} differs by {apart:.1e}: {ours.ravel()[at].tolist()}, expected {right.ravel()[at].tolist()} at {at.tolist()}"

    def named(self, prefix):
        """The same with other names, to stand beside others in one model."""
        nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in self.nodes]
        for node in nodes:
            node.input[:] = [name and prefix + name for name in node.input]
            node.output[:] = [prefix + name for name in node.output]
        rename = lambda values: {prefix + name: value for name, value in values.items()}
        return Question(nodes, rename(self.feeds), rename(self.want), self.within, self.opset, [prefix + name for name in self.constants])


def ask(tally, name, question, asConstants, options, scratch):
    """Compiles and runs a question one way."""
    label = f"{name} [{'constants' if asConstants else 'inputs'}{', -O0' if options else ''}]"
    model, feeds = question.model(asConstants)
    path, plan = scratch / "model.onnx", scratch / "model.dsp"
    onnx.save(model, path)
    result, got = run.compile(path, plan, *options), None
    if result.code == 0:
        result, got = run.infer(plan, feeds, scratch)
    if got is None:
        refused = not result.crashed and not result.hung and result.code in (run.TROUBLE, run.UNSUPPORTED)
        return tally.report(refused and (question.want is REFUSED or question.either), label, result.why())
    if question.want is REFUSED:
        return tally.report(False, label, "was accepted")
    wrong = question.difference(got)
    return tally.report(not wrong, label, wrong)


def main(cases, description):
    """The whole of a script that asks: every case as inputs and as constants, with and without optimisations."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", metavar="RE")
    arguments, tally = parser.parse_args(), checks.Checks()
    with tempfile.TemporaryDirectory(prefix="dspark-questions-") as place:
        for name, build in cases.items():
            if re.search(arguments.filter, name):
                question = build()
                for asConstants in (False, True):
                    for options in ((), ("-O0",)):
                        ask(tally, name, question, asConstants, options, pathlib.Path(place))
    sys.exit(tally.exitCode())
