"""An f64 evaluation of an f32 model, to say who is right when two f32 engines differ by rounding.

The model is rewritten to f64 (weights, constants, casts) and evaluated by ONNX's reference implementation, with a
convolution that does not take minutes."""

import itertools

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


class Conv(OpRun):
    """Sums shifted views of the padded input, one matmul per position of the window: exact enough and vectorised."""

    def _run(self, x, w, b=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, pads=None, strides=None):
        rank = x.ndim - 2
        dilations, strides, group = dilations or [1] * rank, strides or [1] * rank, group or 1
        window = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
        pads = self.resolvePads(auto_pad, x.shape[2:], window, strides, pads or [0] * 2 * rank)
        x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:])])
        size = [(n - k) // s + 1 for n, k, s in zip(x.shape[2:], window, strides)]
        result = np.zeros((x.shape[0], w.shape[0], *size), x.dtype)
        perGroup, outPerGroup = x.shape[1] // group, w.shape[0] // group
        split = (x.shape[0], group, perGroup, -1)
        for at in itertools.product(*(range(k) for k in w.shape[2:])):
            index = tuple(slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in zip(at, dilations, size, strides))
            view = x[(slice(None), slice(None), *index)].reshape(split)
            weights = w[(slice(None), slice(None), *at)].reshape(group, outPerGroup, perGroup)
            result += np.matmul(weights, view).reshape(result.shape)
        return (result if b is None else result + b.reshape(1, -1, *[1] * rank),)

    @staticmethod
    def resolvePads(auto, shape, window, strides, pads):
        if auto in (None, "NOTSET", b"NOTSET", "VALID", b"VALID"):
            return pads
        total = [max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in zip(shape, window, strides)]
        less, more = [t // 2 for t in total], [t - t // 2 for t in total]
        return less + more if auto in ("SAME_UPPER", b"SAME_UPPER") else more + less


class BatchNormalization(OpRun):
    """The reference implementation of opset 9 normalises by the batch; at inference the given statistics count."""

    def _run(self, x, scale, bias, mean, variance, epsilon=None, momentum=None, training_mode=None):
        factor = scale / np.sqrt(variance + (1e-5 if epsilon is None else epsilon))
        form = (1, -1, *[1] * (x.ndim - 2))
        return (x * factor.reshape(form) + (bias - mean * factor).reshape(form),)


class GatherElements(OpRun):
    """The reference implementation wants indices as large as the data off the axis; smaller ones are allowed."""

    def _run(self, data, indices, axis=None):
        axis = (axis or 0) % data.ndim
        inside = tuple(slice(None) if k == axis else slice(size) for k, size in enumerate(indices.shape))
        return (np.take_along_axis(data[inside], indices, axis),)


def widenTensor(tensor):
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def widenGraph(graph):
    for tensor in graph.initializer:
        widenTensor(tensor)
    for value in itertools.chain(graph.input, graph.output, graph.value_info):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                widenTensor(attribute.t)
            elif attribute.type == onnx.AttributeProto.GRAPH:
                widenGraph(attribute.g)
            elif attribute.name in ("to", "dtype") and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE


def evaluator(path):
    model = onnx.load(path)
    widenGraph(model.graph)
    return ReferenceEvaluator(model, new_ops=[Conv, BatchNormalization, GatherElements])


def outputs(session, feeds):
    wide = {name: value.astype(np.float64) if value.dtype == np.float32 else value for name, value in feeds.items()}
    return dict(zip(session.output_names, session.run(None, wide)))
