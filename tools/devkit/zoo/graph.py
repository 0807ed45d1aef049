"""Writing an ONNX graph node by node, with seeded weights, in one of two styles of exporter output.

`modern` (opset 20): LayerNormalization, Gelu and HardSwish are nodes, batch norms are folded into convolutions, the parts
of a shape are taken by Shape(start, end). `older` (opset 13): norms and activations are spelled out, BatchNormalization
stays, the parts of a shape are taken by Shape, Gather, Unsqueeze. Both write what torch's exporters write for a model
with a symbolic batch dim.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

STYLES = {"modern": 20, "older": 13}


class Graph:
    def __init__(self, name, style="modern", seed=0):
        self.name, self.style, self.opset = name, style, STYLES[style]
        self.random = np.random.default_rng(seed)
        self.nodes, self.inputs, self.outputs = [], [], []
        self.weights = []  # functions that make the arrays, so that a graph costs nothing until it is written
        self.constants = {}
        self.limits = {}  # exclusive upper bound of an integer input

    @property
    def isModern(self):
        return self.style == "modern"

    def input(self, name, dims, dtype=TensorProto.FLOAT, limit=None):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, dims))
        if limit is not None:
            self.limits[name] = limit
        return name

    def output(self, name, value, dims, dtype=TensorProto.FLOAT):
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, dtype, dims))

    def op(self, kind, *inputs, outputs=1, **attributes):
        """Adds a node; returns the name of its result, or a list of them."""
        number = len(self.nodes)
        results = [f"{kind}_{number}" + (f"_{k}" if outputs > 1 else "") for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, results, name=f"{kind}_{number}", **attributes))
        return results if outputs > 1 else results[0]

    # Weights and constants

    def weight(self, make):
        self.weights.append(make)
        return f"w{len(self.weights) - 1}"

    def initializer(self, array):
        return self.weight(lambda: array)

    def normal(self, shape, deviation, mean=0.0):
        """Normal numbers; a deviation of gain / sqrt(fan in) keeps the size of activations from layer to layer."""

        def draw():
            numbers = self.random.standard_normal(shape, np.float32)
            numbers *= np.float32(deviation)
            numbers += np.float32(mean)
            return numbers

        return self.weight(draw)

    def uniform(self, shape, low, high):
        return self.weight(lambda: self.random.uniform(low, high, shape).astype(np.float32))

    def constant(self, value, dtype):
        """A small constant, one initializer for all its uses."""
        array = np.asarray(value, dtype)
        key = (array.shape, array.dtype.str, array.tobytes())
        if key not in self.constants:
            self.constants[key] = self.initializer(array)
        return self.constants[key]

    def number(self, value):
        return self.constant(value, np.float32)

    def ints(self, values):
        return self.constant(values, np.int64)

    # Forms that differ between operator sets

    def dim(self, x, axis):
        """The size of one axis as an int64 tensor [1], for `reshape`."""
        if self.isModern:
            return self.op("Shape", x, start=axis, end=axis + 1)
        scalar = self.op("Gather", self.op("Shape", x), self.ints(axis), axis=0)
        return self.op("Unsqueeze", scalar, self.ints([0]))

    def reshape(self, x, dims):
        """`dims` holds numbers and results of `dim`."""
        if all(isinstance(dim, int) for dim in dims):
            return self.op("Reshape", x, self.ints(dims))
        parts = [self.ints([dim]) if isinstance(dim, int) else dim for dim in dims]
        return self.op("Reshape", x, self.op("Concat", *parts, axis=0))

    def mean(self, x, axes):
        """Mean over axes, kept as 1."""
        if self.opset >= 18:
            return self.op("ReduceMean", x, self.ints(axes), keepdims=1)
        return self.op("ReduceMean", x, axes=axes, keepdims=1)

    def slice(self, x, axis, start, end, step=1):
        return self.op("Slice", x, self.ints([start]), self.ints([end]), self.ints([axis]), self.ints([step]))

    def split(self, x, parts, axis):
        attributes = {"num_outputs": parts} if self.opset >= 18 else {}
        return self.op("Split", x, outputs=parts, axis=axis, **attributes)

    def model(self):
        """The model with its weights, which are drawn now; to be called once."""
        weights = [numpy_helper.from_array(make(), f"w{k}") for k, make in enumerate(self.weights)]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9, producer_name="zoo")
