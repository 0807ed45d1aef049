"""Models that are large on purpose: many nodes, many bytes. Made on the spot, of random weights."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .bad_models import field, lengthPrefix, value

BLOCKS = 2000
LAYERS, WIDTH = 16, 4096  # 16 x 64 MiB of f32 weights


def smallWeights():
    random = np.random.default_rng(11)
    return [random.standard_normal((16, 16)).astype(np.float32) / 4 for _ in range(50)]


def manyNodesAnswer(x, blocks=BLOCKS):
    """What the model of manyNodes gives, in f64."""
    x, weights = x.astype(np.float64), smallWeights()
    for k in range(blocks):
        q = x @ weights[k % 50]
        e = np.exp(np.tanh(q))
        x = 1 / (1 + np.exp(-(e / e.sum(-1, keepdims=True) * q + x)))
    return x


def manyNodes(path, blocks=BLOCKS):
    """Ten nodes per block: a small matmul, elementwise chains, a softmax, and a reshape whose shape is computed."""
    nodes, last = [], "x"
    weights = [numpy_helper.from_array(w, f"w{k}") for k, w in enumerate(smallWeights())]
    weights.append(numpy_helper.from_array(np.array([-1], np.int64), "minus1"))
    for k in range(blocks):
        steps = [("MatMul", [last, f"w{k % 50}"], "m"), ("Shape", ["m"], "s"), ("Concat", ["s", "minus1"], "c"), ("Reshape", ["m", "c"], "r"),
                 ("Squeeze", ["r", "minus1"], "q"), ("Tanh", ["q"], "t"), ("Softmax", ["t"], "p"), ("Mul", ["p", "q"], "u"),
                 ("Add", ["u", last], "a"), ("Sigmoid", ["a"], "y")]
        local = {name for _, _, name in steps}
        for kind, inputs, name in steps:
            attributes = {"axis": 0} if kind == "Concat" else {}
            nodes.append(helper.make_node(kind, [f"{i}{k}" if i in local else i for i in inputs], [f"{name}{k}"], name=f"{kind}_{k}", **attributes))
        last = f"y{k}"
    graph = helper.make_graph(nodes, "many", [value("x", ("rows", 16))], [value(last, ("rows", 16))], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    return len(nodes)


def layer(k):
    """The weights of one layer: one random block, turned by k rows, so that making them takes no time."""
    block = np.random.default_rng(12).random((WIDTH, WIDTH), np.float32) - 0.5
    return np.roll(block * np.float32(12**0.5 / WIDTH**0.5), k, axis=0)


def manyBytes(path):
    """A chain of matmuls with 1 GiB of weights inside the file, written piece by piece. Returns the weights' bytes."""
    tensors = []
    for k in range(LAYERS):
        head = field(8, f"w{k}".encode())
        tensor = TensorProto(data_type=TensorProto.FLOAT, dims=[WIDTH, WIDTH])
        head += tensor.SerializeToString()
        tensors.append((head, lengthPrefix(9, WIDTH * WIDTH * 4)))
    names = ["x", *(f"h{k}" for k in range(LAYERS - 1)), "y"]
    nodes = b"".join(field(1, helper.make_node("MatMul", [names[k], f"w{k}"], [names[k + 1]], name=f"mm{k}").SerializeToString())
                     for k in range(LAYERS))
    ends = field(11, value("x", ("rows", WIDTH)).SerializeToString()) + field(12, value("y", ("rows", WIDTH)).SerializeToString())
    fixed = nodes + field(2, b"bytes") + ends
    sizes = [len(head) + len(prefix) + WIDTH * WIDTH * 4 for head, prefix in tensors]
    graphBytes = len(fixed) + sum(len(lengthPrefix(5, size)) + size for size in sizes)
    with open(path, "wb") as file:
        file.write(b"\x08\x0a" + field(8, helper.make_opsetid("", 17).SerializeToString()) + lengthPrefix(7, graphBytes) + fixed)
        for k, (head, prefix) in enumerate(tensors):
            file.write(lengthPrefix(5, sizes[k]) + head + prefix)
            layer(k).tofile(file)
    return LAYERS * WIDTH * WIDTH * 4



def manyBytesAnswer(x):
    """What the model of manyBytes gives."""
    for k in range(LAYERS):
        x = x @ layer(k)
    return x
