"""Seeded random networks with constant weights: what the compiler's passes rewrite, in orders nobody thought of."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Net:
    """A chain of layers on one tensor [N, C, spatial...]; every layer picks its own parameters."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []
        rank = int(self.random.choice([1, 2, 2, 2, 2, 3]))
        self.batch = int(self.random.integers(1, 3))
        self.channels = int(self.random.choice([1, 3, 4, 8, 16, 17, 24]))
        self.spatial = [int(n) for n in self.random.integers(5, 14, rank)]
        self.input = [self.batch, self.channels, *self.spatial]
        self.value = "x"
        self.kept = [("x", list(self.shape))]

    @property
    def shape(self):
        return [self.batch, self.channels, *self.spatial]

    def pick(self, *choices):
        return choices[int(self.random.integers(len(choices)))]

    def weight(self, shape, scale=1.0, shift=0.0):
        name = f"w{len(self.weights)}"
        array = (self.random.standard_normal(shape) * scale + shift).astype(np.float32)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, op, inputs, **attributes):
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [out], name=f"{op}_{len(self.nodes)}", **attributes))
        return out

    def number(self, value):
        return self.constant(np.float32(value))

    # --- layers: each leaves self.value and self.shape right, or does nothing ---

    def conv(self):
        group = self.pick(1, 1, self.channels, 2 if self.channels % 2 == 0 else 1)
        outputs = self.channels if group == self.channels and group > 1 else int(self.random.choice([4, 8, 12, 17, 32])) * group
        if group > 1 and group != self.channels:
            outputs = group * int(self.random.choice([2, 5, 16]))
        kernel = [int(self.random.choice([1, 1, 2, 3, 5])) for _ in self.spatial]
        stride = [int(self.random.choice([1, 1, 2])) for _ in self.spatial]
        dilation = [self.pick(1, 1, 2) if k > 1 else 1 for k in kernel]
        pads = [int(self.random.integers(0, k + 1)) for k in kernel] + [int(self.random.integers(0, k + 1)) for k in kernel]
        rank = len(kernel)
        after = [(n + pads[i] + pads[i + rank] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i, n in enumerate(self.spatial)]
        if min(after) < 1:
            return
        fan = self.channels // group * int(np.prod(kernel))
        inputs = [self.value, self.weight([outputs, self.channels // group, *kernel], fan**-0.5)]
        if self.pick(True, False):
            inputs.append(self.weight([outputs], 0.3))
        self.value = self.add("Conv", inputs, group=group, kernel_shape=kernel, strides=stride, dilations=dilation, pads=pads)
        self.channels, self.spatial = outputs, after

    def convTranspose(self):
        if max(self.spatial) > 16:
            return
        outputs, kernel = int(self.random.choice([1, 4, 16, 20])), [2] * len(self.spatial)
        self.value = self.add("ConvTranspose", [self.value, self.weight([self.channels, outputs, *kernel], self.channels**-0.5), self.weight([outputs])],
                              kernel_shape=kernel, strides=[2] * len(self.spatial))
        self.channels, self.spatial = outputs, [2 * n for n in self.spatial]

    def batchNorm(self):
        c = [self.channels]
        variance = self.constant((self.random.random(c) + 0.5).astype(np.float32))
        self.value = self.add("BatchNormalization", [self.value, self.weight(c, 0.5, 1), self.weight(c), self.weight(c), variance], epsilon=1e-3)

    def affine(self):
        ones = [1] * len(self.spatial)
        for op in self.pick(["Mul", "Add"], ["Add"], ["Mul"], ["Sub", "Div"]):
            shape = self.pick([1], [self.channels, *ones], [1, self.channels, *ones], [])
            sides = [self.value, self.weight(shape, 0.2, 1.5)]
            self.value = self.add(op, sides if op in ("Sub", "Div") or self.pick(True, False) else sides[::-1])

    def activation(self):
        x = self.value
        kind = self.pick("Relu", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu", "clip", "hard_swish", "hard_sigmoid", "silu", "gelu", "Elu", "Softplus")
        if kind == "clip":
            self.value = self.add("Clip", [x, self.number(0), self.number(6)])
        elif kind in ("hard_swish", "hard_sigmoid"):
            gate = self.add("Clip", [self.add("Add", [x, self.number(3)]), self.number(0), self.number(6)])
            scaled = self.add("Mul", [x, gate]) if kind == "hard_swish" else gate
            self.value = self.add("Div", [scaled, self.number(6)])
        elif kind == "silu":
            self.value = self.add("Mul", [x, self.add("Sigmoid", [x])])
        elif kind == "gelu":
            erf = self.add("Erf", [self.add("Div", [x, self.number(2**0.5)])])
            self.value = self.add("Mul", [self.add("Mul", [x, self.add("Add", [erf, self.number(1)])]), self.number(0.5)])
        else:
            self.value = self.add(kind, [x])

    def residual(self):
        same = [value for value, shape in self.kept if shape == self.shape and value != self.value]
        if same:
            sides = [self.value, same[int(self.random.integers(len(same)))]]
            self.value = self.add(self.pick("Add", "Mul", "Sub", "Max"), sides if self.pick(True, False) else sides[::-1])

    def squeezeExcite(self):
        ones, inner = [1] * len(self.spatial), max(1, self.channels // 4)
        pooled = self.add("GlobalAveragePool", [self.value])
        small = self.add("Relu", [self.add("Conv", [pooled, self.weight([inner, self.channels, *ones], self.channels**-0.5)])])
        gate = self.add("HardSigmoid", [self.add("Conv", [small, self.weight([self.channels, inner, *ones], inner**-0.5), self.weight([self.channels])])])
        self.value = self.add("Mul", [self.value, gate])

    def pool(self):
        if min(self.spatial) < 3:
            return
        kind, ceil = self.pick("MaxPool", "AveragePool"), self.pick(0, 0, 1)
        self.value = self.add(kind, [self.value], kernel_shape=[2] * len(self.spatial), strides=[2] * len(self.spatial), ceil_mode=ceil)
        self.spatial = [-(-(n - 2) // 2) + 1 if ceil else (n - 2) // 2 + 1 for n in self.spatial]

    def resize(self):
        if len(self.spatial) != 2 or max(self.spatial) > 16:
            return
        scales = self.constant(np.array([1, 1, 2, 2], np.float32))
        mode = self.pick({"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, {"mode": "linear"})
        self.value = self.add("Resize", [self.value, "", scales], **mode)
        self.spatial = [2 * n for n in self.spatial]

    def rows(self):
        """Reductions over the last axes between elementwise operations: what a region computes row by row."""
        x, rank = self.value, 2 + len(self.spatial)
        count = self.pick(1, 1, 2, rank - 1)
        axes = self.constant(np.arange(rank - count, rank))
        if self.pick(True, False):
            mask = self.pick([1], self.shape[-1:], self.shape[-2:], [self.channels, *[1] * len(self.spatial)])
            x = self.add("Add", [self.add("Mul", [x, self.number(0.5)]), self.weight(mask)])
        kind = self.pick("Softmax", "LogSoftmax", "norm", "LayerNormalization", "ReduceL2", "ReduceMax", "ReduceLogSumExp", "ReduceSum")
        if kind in ("Softmax", "LogSoftmax"):
            y = self.add(kind, [x], axis=-1)
        elif kind == "LayerNormalization":
            y = self.add(kind, [x, self.weight(self.shape[-count:], 0.2, 1), self.weight(self.shape[-count:])], axis=-count)
        elif kind == "norm":
            centred = self.add("Sub", [x, self.add("ReduceMean", [x, axes])])
            variance = self.add("ReduceMean", [self.add("Mul", [centred, centred]), axes])
            y = self.add("Div", [centred, self.add("Sqrt", [self.add("Add", [variance, self.number(1e-2)])])])
        elif kind == "ReduceL2":
            y = self.add("Div", [x, self.add("Clip", [self.add(kind, [x, axes]), self.number(1e-3)])])
        elif kind == "ReduceSum":
            gate = self.add("Sigmoid", [self.add(kind, [x, axes], keepdims=1)])
            y = self.add("Mul", [x, gate])
        else:
            y = self.add("Sub", [x, self.add(kind, [x, axes])])
        if self.pick(True, False):
            y = self.add("Add", [y, self.pick(self.value, x)])
        self.value = y

    def concat(self):
        if self.channels > 48:
            return
        other = self.add("Relu", [self.value])
        self.value = self.add("Concat", [self.value, other], axis=1)
        self.channels *= 2

    def pad(self):
        rank = len(self.spatial)
        before, after = self.random.integers(0, 3, rank), self.random.integers(0, 3, rank)
        pads = self.constant(np.array([0, 0, *before, 0, 0, *after], np.int64))
        self.value = self.add("Pad", [self.value, pads], mode=self.pick("constant", "edge"))
        self.spatial = [int(n + a + b) for n, a, b in zip(self.spatial, before, after)]

    def slice(self):
        axis = int(self.random.integers(1, 2 + len(self.spatial)))
        if self.shape[axis] < 4:
            return
        one = lambda n: self.constant(np.array([n], np.int64))
        self.value = self.add("Slice", [self.value, one(1), one(2**31), one(axis)])
        if axis == 1:
            self.channels -= 1
        else:
            self.spatial[axis - 2] -= 1

    # --- endings ---

    def end(self):
        kind = self.pick("none", "mean", "flatten", "sequence", "sequence")
        if kind == "mean":
            axes = self.constant(np.arange(2, 2 + len(self.spatial)))
            self.value = self.add("ReduceMean", [self.value, axes], keepdims=self.pick(0, 1))
        elif kind == "flatten":
            flat = self.add("Flatten", [self.value])
            width = self.channels * int(np.prod(self.spatial))
            turned = self.pick(0, 1)
            b = self.weight([10, width] if turned else [width, 10], width**-0.5)
            self.value = self.add("Softmax", [self.add("Gemm", [flat, b, self.weight([10])], transB=turned)])
        elif kind == "sequence":
            self.sequence()

    def sequence(self):
        """[N, C, spatial...] as rows of C: a norm spelled out, then a product with bias and activation."""
        c = self.channels
        rows = self.add("Reshape", [self.value, self.constant(np.array([0, c, -1], np.int64))])
        rows = self.add("Transpose", [rows], perm=[0, 2, 1])
        axis = self.constant(np.array([-1], np.int64))
        centred = self.add("Sub", [rows, self.add("ReduceMean", [rows, axis])])
        variance = self.add("ReduceMean", [self.add("Pow", [centred, self.number(2)]), axis])
        normal = self.add("Div", [centred, self.add("Sqrt", [self.add("Add", [variance, self.number(1e-3)])])])
        normal = self.add("Add", [self.add("Mul", [normal, self.weight([c], 0.2, 1)]), self.weight([c])])
        product = self.add("Add", [self.add("MatMul", [normal, self.weight([c, 20], c**-0.5)]), self.weight([20])])
        self.value = self.add(self.pick("Relu", "Tanh", "Identity"), [product])


LAYERS = ["conv"] * 5 + ["batchNorm", "batchNorm", "affine", "affine", "activation", "activation", "activation", "residual", "residual",
                         "squeezeExcite", "rows", "rows", "pool", "resize", "concat", "pad", "slice", "convTranspose"]


def make(seed):
    """(model, input shape); odd seeds have a symbolic batch."""
    net = Net(seed)
    for _ in range(int(net.random.integers(3, 12))):
        getattr(net, net.pick(*LAYERS))()
        net.kept.append((net.value, list(net.shape)))
    net.end()
    dims = list(net.input) if seed % 2 == 0 else ["n", *net.input[1:]]
    out = net.add("Identity", [net.value])
    graph = helper.make_graph(net.nodes, f"net{seed}", [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
                              [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)], net.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 10
    return model, net.input
