"""Small networks with seeded random weights, and their quantised forms as onnxruntime.quantization makes them: QDQ and
QOperator, per channel and per tensor, unsigned and signed activations, and dynamic."""

import contextlib
import io
import logging

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization

STEM = 16


class Net:
    def __init__(self, seed, shape):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights, self.shape = [], [], shape

    def weight(self, *shape, scale=None):
        fan = np.prod(shape[1:]) if len(shape) > 2 else shape[0]
        array = self.random.standard_normal(shape) * (scale or (2.0 / fan) ** 0.5)
        return self.constant(array.astype(np.float32))

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, op, *inputs, **attributes):
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], name=f"{op}_{len(self.nodes)}", **attributes))
        return out

    def conv(self, x, inputs, outputs, kernel=1, stride=1, group=1):
        pad = kernel // 2
        return self.add("Conv", x, self.weight(outputs, inputs // group, kernel, kernel), self.weight(outputs, scale=0.1),
                        kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=group)

    def model(self, y, rank):
        graph = helper.make_graph(
            self.nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(y, TensorProto.FLOAT, [None] * rank)], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def residual(seed):
    """ResNet in small: stem, max pool, bottlenecks with and without a projection, mean, classifier."""
    net = Net(seed, [2, 3, 33, 33])
    x = net.add("Relu", net.conv("x", 3, STEM, 7, 2))
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for inputs, inner, outputs, stride in [(STEM, 8, 40, 1), (40, 8, 40, 1), (40, 20, 72, 2)]:
        y = net.add("Relu", net.conv(x, inputs, inner))
        y = net.add("Relu", net.conv(y, inner, inner, 3, stride))
        y = net.conv(y, inner, outputs)
        skip = x if inputs == outputs else net.conv(x, inputs, outputs, 1, stride)
        x = net.add("Relu", net.add("Add", y, skip))
    x = net.add("Flatten", net.add("GlobalAveragePool", x))
    return net.model(net.add("Gemm", x, net.weight(72, 10), net.weight(10, scale=0.1)), 2)


def mobile(seed):
    """MobileNet in small: depthwise, hard swish, squeeze and excite, concat, average pool."""
    net = Net(seed, [1, 3, 24, 24])
    x = net.add("HardSwish", net.conv("x", 3, STEM, 3, 2))
    for kernel, stride in [(3, 1), (5, 2)]:
        y = net.add("Clip", net.conv(x, STEM, 48), net.constant(np.float32(0)), net.constant(np.float32(6)))
        y = net.conv(y, 48, 48, kernel, stride, 48)
        s = net.add("Relu", net.conv(net.add("GlobalAveragePool", y), 48, 12))
        y = net.add("Mul", y, net.add("Sigmoid", net.conv(s, 12, 48)))
        y = net.conv(y, 48, STEM)
        x = net.add("Add", x, y) if stride == 1 else y
    pooled = net.add("AveragePool", x, kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1])
    x = net.add("LeakyRelu", net.conv(net.add("Concat", x, pooled, axis=1), 2 * STEM, 24, 3, 1, 2), alpha=0.1)
    return net.model(net.add("Softmax", net.add("Flatten", net.add("GlobalAveragePool", x))), 2)


def encoder(seed):
    """A transformer's layer: products of activations, norms and GELU among quantised matmuls."""
    tokens, width, heads = 21, 48, 3
    net = Net(seed, [1, tokens, width])
    shape = net.constant(np.array([0, 0, heads, width // heads], np.int64))

    def linear(x, inputs, outputs):
        return net.add("Add", net.add("MatMul", x, net.weight(inputs, outputs)), net.weight(outputs, scale=0.1))

    def heads_of(x, perm):
        return net.add("Transpose", net.add("Reshape", linear(x, width, width), shape), perm=perm)

    scores = net.add("MatMul", heads_of("x", [0, 2, 1, 3]), heads_of("x", [0, 2, 3, 1]))
    scores = net.add("Softmax", net.add("Mul", scores, net.constant(np.float32((width // heads) ** -0.5))), axis=-1)
    mixed = net.add("Transpose", net.add("MatMul", scores, heads_of("x", [0, 2, 1, 3])), perm=[0, 2, 1, 3])
    mixed = net.add("Reshape", mixed, net.constant(np.array([0, 0, width], np.int64)))

    def normed(x):
        return net.add("LayerNormalization", x, net.constant(np.ones(width, np.float32)), net.constant(np.zeros(width, np.float32)))

    x = normed(net.add("Add", "x", linear(mixed, width, width)))
    wide = linear(x, width, 2 * width)
    erf = net.add("Erf", net.add("Div", wide, net.constant(np.float32(2 ** 0.5))))
    gelu = net.add("Mul", net.add("Mul", wide, net.add("Add", erf, net.constant(np.float32(1)))), net.constant(np.float32(0.5)))
    return net.model(normed(net.add("Add", x, linear(gelu, 2 * width, width))), 3)


def recurrent(seed, batch=2):
    """An LSTM over nine steps, both ways; dynamic quantisation makes it com.microsoft's DynamicQuantizeLSTM."""
    inputs, hidden = 20, 24
    net = Net(seed, [9, batch, inputs])
    y = net.add("LSTM", "x", net.weight(2, 4 * hidden, inputs, scale=0.3), net.weight(2, 4 * hidden, hidden, scale=0.2),
                net.weight(2, 8 * hidden, scale=0.1), hidden_size=hidden, direction="bidirectional")
    return net.model(y, 4)


def whole_bias(seed):
    """Dilated 1-D convolutions as earlier quantisers wrote them: bytes from DynamicQuantizeLinear, and the bias, in units of the sums,
    added before the cast."""
    net = Net(seed, [1, 24, 50])
    x = "x"
    for inputs, outputs, dilation in [(24, 40, 1), (40, 19, 3)]:
        out = [f"v{len(net.nodes)}{part}" for part in ("", "_scale", "_zero")]
        net.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], out))
        weights = net.constant(net.random.integers(60, 190, (outputs, inputs, 5), np.uint8))
        scale = net.add("Mul", out[1], net.constant(np.float32(0.01)))
        bias = net.add("Cast", net.add("Floor", net.add("Div", net.weight(outputs, scale=0.5), scale)), to=TensorProto.INT32)
        sums = net.add("ConvInteger", out[0], weights, out[2], net.constant(np.uint8(125)), kernel_shape=[5], dilations=[dilation],
                       pads=[2 * dilation] * 2)
        sums = net.add("Add", sums, net.add("Reshape", bias, net.constant(np.array([1, -1, 1], np.int64))))
        x = net.add("Mul", net.add("Cast", sums, to=TensorProto.FLOAT), scale)
    return net.model(x, 3)


NETS = {"residual": residual, "mobile": mobile, "encoder": encoder, "recurrent": recurrent, "recurrent-one": lambda seed: recurrent(seed, 1)}
# Quantised as they are written.
WRITTEN = {"whole-bias": whole_bias}
U8, S8 = quantization.QuantType.QUInt8, quantization.QuantType.QInt8
# name: (format, options). Weights of QOperator forms and of unsigned activations have 7 bits where onnxruntime's AVX2
# kernels would saturate with more.
FORMS = {
    "qdq-u8": (quantization.QuantFormat.QDQ, dict(activation_type=U8, weight_type=S8)),
    "qdq-u8-channel": (quantization.QuantFormat.QDQ, dict(activation_type=U8, weight_type=S8, per_channel=True)),
    "qdq-s8-channel": (quantization.QuantFormat.QDQ, dict(activation_type=S8, weight_type=S8, per_channel=True,
                                                          extra_options={"ActivationSymmetric": True})),
    "qdq-u8u8": (quantization.QuantFormat.QDQ, dict(activation_type=U8, weight_type=U8)),
    "qoperator-u8": (quantization.QuantFormat.QOperator, dict(activation_type=U8, weight_type=S8, reduce_range=True)),
    "qoperator-u8-channel": (quantization.QuantFormat.QOperator,
                             dict(activation_type=U8, weight_type=S8, per_channel=True, reduce_range=True)),
    "dynamic": (None, dict(weight_type=S8, reduce_range=True)),
    "dynamic-channel": (None, dict(weight_type=S8, per_channel=True, reduce_range=True)),
}


class Calibration(quantization.CalibrationDataReader):
    def __init__(self, batches):
        self.batches = iter(batches)

    def get_next(self):
        return next(self.batches, None)


def noise(shape, count=4):
    """Batches of normal numbers for a network of this module."""
    random = np.random.default_rng(1)
    return [{"x": random.standard_normal(shape).astype(np.float32)} for _ in range(count)]


def quantize(source, target, form, batches, types=None):
    """Writes the quantised form of the model file `source`, calibrated on `batches` of feeds; `types` are the operators to quantise, if
    not all."""
    format, options = FORMS[form]
    options = options | ({"op_types_to_quantize": types} if types else {})
    logging.disable(logging.WARNING)
    with contextlib.redirect_stdout(io.StringIO()):
        if format is None:
            quantization.quantize_dynamic(str(source), str(target), **options)
        else:
            quantization.quantize_static(str(source), str(target), Calibration(batches), quant_format=format, **options)
    logging.disable(logging.NOTSET)
