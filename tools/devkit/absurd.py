"""Node cases of ONNX with one attribute or one integer operand made absurd: what no exporter writes and an attacker would."""

import copy

import numpy as np
import onnx
from onnx import AttributeProto, helper, numpy_helper

from . import graph_modes

LEAST, MOST = -(2**63), 2**63 - 1
INTS = (LEAST, MOST, -1, 0, 2**31, 2**40)
FLOATS = (float("nan"), float("inf"), -float("inf"), -1e38, 0.0)
STRINGS = ("", "nonsense", "a" * 100_000)


def attributeValues(kind, old):
    """Absurd values of an attribute's type; `old` is its value or None."""
    length = len(old) if isinstance(old, list) and old else 2
    return {AttributeProto.INT: INTS, AttributeProto.FLOAT: FLOATS, AttributeProto.STRING: STRINGS,
            AttributeProto.INTS: ([], *([value] * length for value in INTS), [1] * 10_000),
            AttributeProto.FLOATS: ([], *([value] * length for value in FLOATS)),
            AttributeProto.STRINGS: ([], ["nonsense"] * 3)}.get(kind, ())


def ofAttributes(model):
    """(what, changed model) for each attribute that the node has or may have."""
    node = model.graph.node[0]
    given = {attribute.name: attribute for attribute in node.attribute}
    opset = next((entry.version for entry in model.opset_import if entry.domain == node.domain), None)
    try:
        known = {name: attribute.type for name, attribute in onnx.defs.get_schema(node.op_type, opset, node.domain).attributes.items()}
    except (onnx.defs.SchemaError, TypeError):
        known = {}
    for name in sorted(known | {name: 0 for name in given}):
        kind = given[name].type if name in given else int(known[name])
        old = helper.get_attribute_value(given[name]) if name in given else None
        for k, value in enumerate(attributeValues(kind, old)):
            changed = copy.deepcopy(model)
            kept = [attribute for attribute in changed.graph.node[0].attribute if attribute.name != name]
            del changed.graph.node[0].attribute[:]
            changed.graph.node[0].attribute.extend(kept)
            changed.graph.node[0].attribute.append(helper.make_attribute(name, value, attr_type=kind))
            yield f"{name} {k}", changed


def ofOperands(model, data):
    """(what, changed model) for each integer operand, as a constant full of one absurd number."""
    for index, info in enumerate(model.graph.input):
        if info.type.tensor_type.elem_type not in (onnx.TensorProto.INT64, onnx.TensorProto.INT32):
            continue
        tensor = onnx.TensorProto()
        tensor.ParseFromString(graph_modes.inputFile(data, index, info.name).read_bytes())
        array = numpy_helper.to_array(tensor)
        for value in INTS:
            with np.errstate(all="ignore"):
                absurd = np.full(array.shape, np.int64(value)).astype(array.dtype)
            changed = copy.deepcopy(model)
            changed.graph.initializer.append(numpy_helper.from_array(absurd, info.name))
            yield f"operand {info.name} {value}", changed


def variants(folder):
    """(name, model) of everything absurd that a case can be made into; its first node is called `culprit`."""
    model = onnx.load(folder / "model.onnx")
    if len(model.graph.node) != 1:
        return
    model.graph.node[0].name = "culprit"
    graph_modes.forgetShapes(model)
    for info in model.graph.output:
        info.ClearField("type")  # some attributes decide it
    for what, changed in ofAttributes(model):
        yield f"{folder.name}: {what}", changed
    for what, changed in ofOperands(model, folder / "test_data_set_0"):
        yield f"{folder.name}: {what}", changed
