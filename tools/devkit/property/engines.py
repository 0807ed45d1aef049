"""DSpark and onnxruntime on drawn graphs. Answers are arrays by name; what an engine says instead is an exception's text."""

import numpy as np
import onnxruntime

from .. import capi, machine, run
from . import draw
from .values import BF16

onnxruntime.set_default_logger_severity(4)


class Refused(Exception):
    """The engine does not take the graph."""


class Failed(Exception):
    """It crashed, hung, or stopped on the way."""


WAYS = {"optimised": (), "as it is": ("-O0",), "interpreted": ("--no-codegen",)}  # options of dspark-compile


def dspark(graphs, way, folder):
    """[(where, outputs)]: at every instruction-set level, on one thread and on two."""
    path, plan = folder / "graph.onnx", folder / "graph.dsp"
    path.write_bytes(draw.model(graphs).SerializeToString())
    result = run.compile(path, plan, "--threads", 1, *WAYS[way])
    if result.code:
        raise (Refused if result.code == run.UNSUPPORTED else Failed)(result.err.strip() or result.why())
    feeds = {name: array for graph in graphs for name, array in graph.feeds().items()}
    answers = []
    for isa in machine.isaLevels():
        for threads in (1, 2):
            try:
                with capi.Session(plan, threads, isa) as session:
                    answers.append((f"{isa}, {threads} threads", session.run(feeds)))
            except capi.Failure as error:
                raise Failed(f"{isa}: {error}") from error
    return answers


def endsPeer(node, operands):
    """Whether onnxruntime 1.31.1 divides by zero or reads outside there, and takes the process with it."""
    if node.op_type in ("Einsum", "InstanceNormalization"):
        return any(array.size == 0 for array in operands)
    if node.op_type in ("Div", "Mod") and operands[1].dtype.kind in "iu":
        return not np.all(operands[1]) or operands[1].dtype.kind == "i" and np.any(operands[1] == -1)
    return False


def peer(graph):
    """onnxruntime's outputs, without its optimisations."""
    if any(endsPeer(node, [graph.values[name].array for name in node.input if name in graph.values]) for node in graph.nodes):
        raise Refused("it would end the process")
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.add_session_config_entry("session.x64quantprecision", "1")  # see devkit/compare.py
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if any(value.dtype == BF16 for value in [*graph.operands, *(graph.values[name] for name in graph.results)]):
        raise Refused("bf16 at its interface")
    try:
        session = onnxruntime.InferenceSession(draw.model([graph]).SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise Refused(str(error)) from error
    try:
        return dict(zip(graph.results, session.run(graph.results, graph.feeds())))
    except Exception as error:
        raise Failed(str(error)) from error
