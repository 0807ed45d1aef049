"""Zero sizes, scalars, control flow, what must be refused."""

import numpy as np
import onnx
from onnx import TensorProto, helper

from ..questions import REFUSED, Question, f32, op
from .cases import case


@case
def concat_of_nothing_ort681():
    return Question(op("Concat", "a b", axis=0), {"a": f32(), "b": f32(1, 2)}, {"y": f32(1, 2)})


@case
def reduce_of_scalar_ort3208():
    return Question(op("ReduceSum", "x"), {"x": np.array(3.5, np.float32)}, {"y": np.array(3.5, np.float32)})


@case
def reduce_max_of_nan_ort10514():
    rows = np.zeros((12, 19), np.float32)
    for k in range(12):
        rows[k, :k] = np.nan
    want = f32(0, *[np.nan] * 11)
    return Question(op("ReduceMax", "x axes", keepdims=0), {"x": rows, "axes": np.array([1])}, {"y": want}, constants=["axes"])


@case
def loop_scans_scalars_burn4210():
    """The body reads a value of the graph around it."""
    value = lambda name, kind, shape=(): helper.make_tensor_value_info(name, kind, shape)
    body = helper.make_graph([op("Identity", "c", "c2"), op("Cast", "i", "f", to=TensorProto.FLOAT), op("Mul", "f x", "scan")], "body",
                             [value("i", TensorProto.INT64), value("c", TensorProto.BOOL)], [value("c2", TensorProto.BOOL), value("scan", TensorProto.FLOAT)])
    node = op("Loop", "n", body=body)
    node.input[:] = ["n", ""]
    return Question(node, {"n": np.array(4), "x": np.array(1.5, np.float32)}, {"y": f32(0, 1.5, 3, 4.5)})


@case
def split_to_sequence_by_0_onnx8322():
    nodes = [op("SplitToSequence", "x split", "s", axis=0), op("ConcatFromSequence", "s", axis=0)]
    return Question(nodes, {"x": f32(1, 2, 3), "split": np.array(0)}, REFUSED)


@case
def concat_axis_far_away_onnx8327():
    return Question(op("Concat", "a b", axis=2**40), {"a": f32(1), "b": f32(2)}, REFUSED)


@case
def output_that_nothing_makes_onnx8121():
    return Question(op("Relu", "x", "z"), {"x": f32(1)}, REFUSED)


@case
def if_reads_outer_values_burn4119():
    """The branch that is taken uses a value of the graph around it and one that the graph computes."""
    branch = lambda kind, name: helper.make_graph([op(kind, "h x", name)], name, [], [onnx.ValueInfoProto(name=name)])
    node = op("If", "c", then_branch=branch("Add", "then"), else_branch=branch("Sub", "else"))
    return Question([op("Neg", "x", "h"), node], {"c": np.array(False), "x": f32(1, -2)}, {"y": f32(-2, 4)})


@case
def scan_reads_outer_values_burn4210():
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    body = helper.make_graph([op("Add", "s e", "t"), op("Mul", "t x", "o")], "body", [value("s", ()), value("e", ())], [value("t", ()), value("o", ())])
    node = op("Scan", "s0 row", "last y", body=body, num_scan_inputs=1)
    return Question(node, {"s0": np.array(0, np.float32), "row": f32(1, 2, 3), "x": np.array(10, np.float32)},
                    {"last": np.array(6, np.float32), "y": f32(10, 30, 60)})
