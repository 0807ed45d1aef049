"""Recipes: If and Loop, whose bodies read values of the graph around them."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .draw import Draw, recipe
from .values import BOOL, F32, F64, I32, I64


def outerValues(draw, body):
    """What a body's nodes read and do not make."""
    names = {name for node in body.graph.nodes for name in node.input}
    return [value for value in draw.pool if value.name in names]


def info(value):
    return helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(value.dtype), None)


def branch(draw, like=None):
    """(body, its last value): some nodes on values from outside; of the type `like` if given."""
    body = Draw(draw.graph.seed, draw.opset, draw)
    for _ in range(draw.integer(1, 3)):
        draw.chosen()(body)
    made = [v for node in body.graph.nodes for v in (body.graph.values[name] for name in node.output) if v.exact]
    good = [v for v in made if like is None or v.dtype == like.dtype]
    if not good and like is not None:
        good = body.add("Identity", [body.give(body.array(like.dtype, like.shape))]) or []
    return (body, good[-1]) if good else (None, None)


def proto(body, name, inputs, outputs):
    weights = [numpy_helper.from_array(v.array, v.name) for v in body.graph.operands]
    return helper.make_graph(body.graph.nodes, name, inputs, outputs, weights)


@recipe(1.5)
def conditional(draw):
    if draw.parent is not None:
        return
    condition = draw.any((BOOL,), rank=0)
    then, a = branch(draw)
    if then is None or any(node.op_type in ("If", "Loop") for node in then.graph.nodes):
        return
    other, b = branch(draw, like=a)
    if other is None:
        return
    outer = list({v.name: v for v in outerValues(draw, then) + outerValues(draw, other)}.values())
    draw.add("If", [condition], outer=outer, dtype=a.dtype if a.array.dtype.kind == "f" else None,
             then_branch=proto(then, "then", [], [info(a)]), else_branch=proto(other, "else", [], [info(b)]))


@recipe(1)
def loop(draw):
    """A state that grows or is added to, and a value per iteration."""
    if draw.parent is not None:
        return
    state = draw.any((F32, I64, F64, I32), rank=range(1, 4), exact=True, odd=False)
    outside = draw.any((state.dtype,), exact=True, odd=False, fits=lambda v: v.shape == state.shape) or state
    name = lambda: f"{draw.prefix}b{next(draw.counter)}"
    step, go, inner, going, after, scanned = (name() for _ in range(6))
    grows = draw.chance(0.4)
    kind = helper.np_dtype_to_tensor_dtype(state.dtype)
    nodes = [helper.make_node("Identity", [go], [going]),
             helper.make_node("Concat", [inner, outside.name], [after], axis=0) if grows else
             helper.make_node(draw.pick(["Add", "Sub", "Max"]), [inner, outside.name], [after]),
             helper.make_node("ReduceMax" if 0 not in state.shape else "ReduceSum", [after], [scanned], keepdims=0)]
    tensor = lambda name, kind, shape=None: helper.make_tensor_value_info(name, kind, shape)
    body = helper.make_graph(nodes, "body", [tensor(step, TensorProto.INT64, ()), tensor(go, TensorProto.BOOL, ()), tensor(inner, kind)],
                             [tensor(going, TensorProto.BOOL, ()), tensor(after, kind), tensor(scanned, kind)])
    trips = draw.give(np.array(draw.pick([1, 2, 3, 5])))
    draw.add("Loop", [trips, None if draw.chance(0.5) else draw.give(np.array(True)), state], 2, outer=[outside], body=body)
