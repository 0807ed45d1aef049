"""One node evaluated by the onnx package's reference implementation, apart from the operators of decided.py."""

import functools
import warnings

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops._op_list import load_op

from . import decided


SETTINGS = {"log": lambda *unused: None, "verbose": 0, "evaluator_cls": ReferenceEvaluator, "existing_functions": {},
            "new_ops": {("", name): kind for name, kind in decided.CLASSES.items()}}


class NotEvaluated(Exception):
    """The reference implementation does not take these operands."""


@functools.cache
def operator(kind, opset):
    """The class that evaluates it, or None where only its function body says what it computes."""
    if kind in decided.CLASSES:
        return decided.CLASSES[kind]
    since = onnx.defs.get_schema(kind, opset, "").since_version
    for version in range(since, opset + 6):  # some are there in newer versions only, which take more types
        try:
            return load_op("", kind, version, evaluator_cls=lambda body: None)
        except Exception:
            continue
    return None


def byFunction(node, arrays, opset):
    """Through the evaluator, which expands the function body for these types."""
    feeds = {name: array for name, array in zip(node.input, arrays) if name}
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in feeds.items()]
    graph = helper.make_graph([node], "one", inputs, [onnx.ValueInfoProto(name=name) for name in node.output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return ReferenceEvaluator(model).run(None, feeds)


def evaluate(node, arrays, opset, context):
    """The outputs of a node on arrays (None for an operand left out); `context` holds what its bodies read from outside."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            kind = operator(node.op_type, opset)
            if kind is None or not isinstance(kind, type):
                results = byFunction(node, arrays, opset)
            else:
                run = kind(node, {**SETTINGS, "opsets": {"": opset}})
                results = run.run(*arrays, **({"context": dict(context)} if run.need_context() else {}))
            return [np.asarray(value) for value in results]
        except Exception as error:  # it raises whatever numpy raised
            raise NotEvaluated(f"{node.op_type}: {error}") from error
