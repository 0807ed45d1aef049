"""Layers of the zoo's models, each in the forms that exporters give it (see graph.py for the two styles)."""

import math

RELU_GAIN = math.sqrt(2)


# Convolutional networks


def conv(g, x, inputs, outputs, kernel=1, stride=1, groups=1, gain=1.0, bias=True):
    fanIn = inputs // groups * kernel * kernel
    parameters = [g.normal((outputs, inputs // groups, kernel, kernel), gain / math.sqrt(fanIn))]
    if bias:
        parameters.append(g.normal((outputs,), 0.1))
    pad = kernel // 2
    return g.op("Conv", x, *parameters, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=groups)


def convNorm(g, x, inputs, outputs, kernel=1, stride=1, groups=1, gain=1.0):
    """Convolution and batch norm: folded, as evaluation mode exports it, or side by side."""
    x = conv(g, x, inputs, outputs, kernel, stride, groups, gain, bias=g.isModern)
    if g.isModern:
        return x
    scale, shift = g.normal((outputs,), 0.1, 1.0), g.normal((outputs,), 0.1)
    mean, variance = g.normal((outputs,), 0.1), g.uniform((outputs,), 0.8, 1.2)
    return g.op("BatchNormalization", x, scale, shift, mean, variance, epsilon=1e-5)


def relu(g, x):
    return g.op("Relu", x)


def relu6(g, x):
    return g.op("Clip", x, g.number(0), g.number(6))


def silu(g, x):
    return g.op("Mul", x, g.op("Sigmoid", x))


def hardSigmoid(g, x):
    return g.op("HardSigmoid", x, alpha=1 / 6, beta=0.5)


def hardSwish(g, x):
    return g.op("HardSwish", x) if g.isModern else g.op("Mul", x, hardSigmoid(g, x))


def globalPool(g, x):
    """adaptive_avg_pool2d(1) is GlobalAveragePool; newer exporters write a mean."""
    return g.mean(x, [2, 3]) if g.isModern else g.op("GlobalAveragePool", x)


def squeezeExcite(g, x, channels, hidden, activation, gate):
    """Channels weighed by what all pixels together say."""
    s = globalPool(g, x)
    s = activation(g, conv(g, s, channels, hidden, gain=RELU_GAIN))
    return g.op("Mul", gate(g, conv(g, s, hidden, channels)), x)


def classifier(g, x, channels, classes):
    """[B, C, 1, 1] -> [B, classes]"""
    return gemm(g, g.op("Flatten", x, axis=1), channels, classes)


# Transformers


def gemm(g, x, inputs, outputs, gain=1.0):
    """nn.Linear on two axes."""
    return g.op("Gemm", x, g.normal((outputs, inputs), gain / math.sqrt(inputs)), g.normal((outputs,), 0.1), transB=1)


def linear(g, x, inputs, outputs, bias=True, gain=1.0):
    """nn.Linear on three or more axes: MatMul, and Add with the bias first."""
    product = g.op("MatMul", x, g.normal((inputs, outputs), gain / math.sqrt(inputs)))
    return g.op("Add", g.normal((outputs,), 0.1), product) if bias else product


def layerNorm(g, x, width, epsilon=1e-5):
    scale, shift = g.normal((width,), 0.1, 1.0), g.normal((width,), 0.1)
    if g.isModern:
        return g.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=epsilon)
    centred = g.op("Sub", x, g.mean(x, [-1]))
    variance = g.mean(g.op("Pow", centred, g.number(2)), [-1])
    normed = g.op("Div", centred, g.op("Sqrt", g.op("Add", variance, g.number(epsilon))))
    return g.op("Add", g.op("Mul", normed, scale), shift)


def gelu(g, x):
    if g.isModern:
        return g.op("Gelu", x)
    erf = g.op("Erf", g.op("Div", x, g.number(math.sqrt(2))))
    return g.op("Mul", g.op("Mul", x, g.op("Add", erf, g.number(1))), g.number(0.5))


def geluTanh(g, x):
    """GPT-2's own approximation, always spelled out."""
    cube = g.op("Pow", x, g.number(3))
    inner = g.op("Mul", g.op("Add", x, g.op("Mul", cube, g.number(0.044715))), g.number(math.sqrt(2 / math.pi)))
    return g.op("Mul", g.op("Mul", x, g.number(0.5)), g.op("Add", g.op("Tanh", inner), g.number(1)))


def mlp(g, x, width, hidden, activation=gelu):
    return linear(g, activation(g, linear(g, x, width, hidden)), hidden, width)


def heads(g, x, batch, tokens, count, size, perm=(0, 2, 1, 3)):
    """[B, T, H*D] -> [B, H, T, D], or with perm (0, 2, 3, 1) the transposed keys."""
    return g.op("Transpose", g.reshape(x, [batch, tokens, count, size]), perm=list(perm))


def attend(g, q, keysTransposed, v, size, mask=None, scaleQueries=False):
    """softmax(q k' / sqrt(D) + mask) v on [B, H, T, D]; the scale on the queries or on the scores."""
    if scaleQueries:
        q = g.op("Mul", q, g.number(size**-0.5))
    scores = g.op("MatMul", q, keysTransposed)
    if not scaleQueries:
        scores = g.op("Div", scores, g.number(math.sqrt(size)))
    if mask:
        scores = mask(scores)
    return g.op("MatMul", g.op("Softmax", scores, axis=-1), v)


def merge(g, x, batch, tokens, width):
    """[B, H, T, D] -> [B, T, H*D]"""
    return g.reshape(g.op("Transpose", x, perm=[0, 2, 1, 3]), [batch, tokens, width])


def fusedQkv(g, x, batch, tokens, width, count):
    """One projection for queries, keys and values, [3, B, H, T, D] taken apart by Gather (older) or Split (modern)."""
    size = width // count
    qkv = g.reshape(linear(g, x, width, 3 * width), [batch, tokens, 3, count, size])
    qkv = g.op("Transpose", qkv, perm=[2, 0, 3, 1, 4])
    if not g.isModern:
        return [g.op("Gather", qkv, g.ints(k), axis=0) for k in range(3)]
    return [g.op("Squeeze", part, g.ints([0])) for part in g.split(qkv, 3, axis=0)]


def separateQkv(g, x, batch, tokens, width, count):
    """Three projections; the keys come transposed."""
    size = width // count
    q, k, v = (linear(g, x, width, width) for _ in range(3))
    return (heads(g, q, batch, tokens, count, size), heads(g, k, batch, tokens, count, size, (0, 2, 3, 1)),
            heads(g, v, batch, tokens, count, size))
