"""ONNX files that must be refused: makers of broken models, one per way of being broken.

Each maker gets an empty folder and returns the path to compile. The table at the end says which words the refusal must
hold (the node or value to look at) and which exit codes are right."""

import base64
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from . import models
from .run import TROUBLE, UNSUPPORTED

F32 = TensorProto.FLOAT
NODE = helper.make_node


def value(name, shape=(2, 3), kind=F32):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, initializers=(), inputs=None, outputs=None, opset=17, functions=(), domains=()):
    graph = helper.make_graph(nodes, "g", inputs or [value("x")], outputs or [value("y")], list(initializers))
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=10)


def save(folder, built):
    path = folder / "bad.onnx"
    path.write_bytes(built if isinstance(built, bytes) else built.SerializeToString())
    return path


def relu():
    return helper.make_node("Relu", ["x"], ["y"], name="relu_1")


def truncated(share):
    def make(folder):
        data = models.byName("magika").path.read_bytes()
        return save(folder, data[: int(len(data) * share)])

    return make


def fixed(data):
    return lambda folder: save(folder, data)


def cyclic(folder):
    return save(folder, model([helper.make_node("Add", ["x", "b"], ["a"], name="first"),
                               helper.make_node("Relu", ["a"], ["b"], name="second"),
                               helper.make_node("Identity", ["b"], ["y"], name="third")]))


def recursiveFunction(folder):
    body = helper.make_function("own", "Again", ["a"], ["b"], [helper.make_node("Again", ["a"], ["b"], name="inner", domain="own")],
                                [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)])
    return save(folder, model([helper.make_node("Again", ["x"], ["y"], name="outer", domain="own")], functions=[body], domains=["own"]))


def lengthPrefix(number, length):
    """Tag and length of a length-delimited protobuf field (numbers below 16) whose payload follows."""
    encoded = b""
    while length > 127:
        encoded, length = encoded + bytes([length & 127 | 128]), length >> 7
    return bytes([number << 3 | 2]) + encoded + bytes([length])


def field(number, payload):
    """Such a field. Written by hand, as Python's protobuf refuses to nest as deep and to grow as large as tests want."""
    return lengthPrefix(number, len(payload)) + payload


def branchNode(name, branches):
    """The bytes of an If node whose branches are the bytes of graphs."""
    attributes = b"".join(field(5, field(1, key) + field(6, graph) + b"\xa0\x01\x05") for key, graph in branches.items())
    return field(1, b"c") + field(2, name) + field(3, name) + field(4, b"If") + attributes


def deepSubgraphs(depth):
    """If inside If inside If: a reader that recurses without a limit runs out of stack."""

    def make(folder):
        inner = leaf = helper.make_graph([helper.make_node("Identity", ["x"], ["leaf"])], "leaf", [], [value("leaf")]).SerializeToString()
        for level in range(depth):
            name = f"if{level}".encode()
            node = branchNode(name, {b"then_branch": inner, b"else_branch": leaf})
            inner = field(1, node) + field(2, name) + field(12, value(name.decode()).SerializeToString())
        inputs = [value("x"), value("c", (), TensorProto.BOOL)]
        graph = inner + b"".join(field(11, info.SerializeToString()) for info in inputs)
        return save(folder, b"\x08\x0a" + field(7, graph) + field(8, helper.make_opsetid("", 17).SerializeToString()))

    return make


def weight(dims, raw, kind=F32):
    tensor = TensorProto(name="w", data_type=kind, raw_data=raw)
    tensor.dims.extend(dims)
    return tensor


def withWeight(dims, raw, kind=F32):
    return lambda folder: save(folder, model([helper.make_node("Add", ["x", "w"], ["y"], name="add_w")], [weight(dims, raw, kind)]))


def external(location, offset=0, length=24, prepare=None):
    def make(folder):
        inner = folder / "model"
        inner.mkdir()
        (folder / "outside.bin").write_bytes(bytes(64))
        (inner / "inside.bin").write_bytes(bytes(24))
        if prepare:
            prepare(inner)
        tensor = weight([2, 3], b"")
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in (("location", location), ("offset", str(offset)), ("length", str(length))):
            tensor.external_data.add(key=key, value=text)
        return save(inner, model([helper.make_node("Add", ["x", "w"], ["y"], name="add_w")], [tensor]))

    return make


def linkOut(inner):
    os.symlink(inner.parent / "outside.bin", inner / "link.bin")


def fifo(inner):
    os.mkfifo(inner / "pipe.bin")


def manyFiles(folder):
    """A sum of 300 weights, each in a file of its own."""
    tensors, steps, total = [], [], "x"
    for k in range(300):
        (folder / f"w{k}.bin").write_bytes(np.full((2, 3), k, np.float32).tobytes())
        tensors.append(weight([2, 3], b""))
        tensors[-1].name, tensors[-1].data_location = f"w{k}", TensorProto.EXTERNAL
        tensors[-1].external_data.add(key="location", value=f"w{k}.bin")
        steps.append(NODE("Add", [total, f"w{k}"], [f"s{k}" if k < 299 else "y"]))
        total = f"s{k}"
    return save(folder, model(steps, tensors))


def unknownKey(folder):
    (folder / "inside.bin").write_bytes(bytes(24))
    tensor = weight([2, 3], b"")
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in (("location", "inside.bin"), ("basepath", "/etc"), ("__class__", "x")):
        tensor.external_data.add(key=key, value=text)
    return save(folder, model([NODE("Add", ["x", "w"], ["y"])], [tensor]))


def zeroDimGguf(folder):
    """llama.cpp 25596: one tensor of type 2 with a dim of 0, in 65 bytes."""
    path = folder / "bad.gguf"
    path.write_bytes(base64.b64decode("R0dVRgMAAAABAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAB0AgAAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="))
    return path


def nodes(*made, **options):
    return lambda folder: save(folder, model(list(made), **options))


def hugeConstant(folder):
    shape = numpy_helper.from_array(np.array([1 << 40, 1 << 30], np.int64), "s")
    return save(folder, model([helper.make_node("ConstantOfShape", ["s"], ["y"], name="huge")], [shape], outputs=[value("y", (None, None))]))


def matmulMismatch(folder):
    w = numpy_helper.from_array(np.zeros((4, 5), np.float32), "w")
    return save(folder, model([helper.make_node("MatMul", ["x", "w"], ["y"], name="mm")], [w], outputs=[value("y", (2, 5))]))


def oneByteOff(folder):
    data = bytearray(models.byName("magika").path.read_bytes())
    for at in range(0, 4096, 7):
        data[at] ^= 0x55
    return save(folder, bytes(data))


ANY = (TROUBLE, UNSUPPORTED)

# name, maker, right exit codes, words that standard error must hold
TABLE = [
    ("missing file", lambda folder: folder / "absent.onnx", (TROUBLE,), ["absent.onnx"]),
    ("a folder", lambda folder: folder, (TROUBLE,), []),
    ("empty file", fixed(b""), (TROUBLE,), ["bad.onnx"]),
    ("text file", fixed(b"this is not a model\n" * 50), (TROUBLE,), ["bad.onnx"]),
    ("random bytes", fixed(np.random.default_rng(1).bytes(5000)), (TROUBLE,), ["bad.onnx"]),
    ("zeros", fixed(bytes(4096)), (TROUBLE,), ["bad.onnx"]),
    *[(f"truncated at {share:.2%}", truncated(share), (TROUBLE,), ["bad.onnx"]) for share in (0.0001, 0.01, 0.3, 0.5, 0.9, 0.9999)],
    ("bytes changed", oneByteOff, ANY, ["bad.onnx"]),
    ("cycle", cyclic, (TROUBLE,), ["bad.onnx", "first"]),
    ("recursive function", recursiveFunction, (TROUBLE,), ["bad.onnx", "Again"]),
    ("subgraphs 90 deep", deepSubgraphs(90), ANY, ["bad.onnx"]),
    ("subgraphs 400 deep", deepSubgraphs(400), ANY, ["bad.onnx"]),
    ("undefined input", nodes(NODE("Add", ["x", "nowhere"], ["y"], name="add_1")), (TROUBLE,), ["bad.onnx", "add_1", "nowhere"]),
    ("value defined twice", nodes(relu(), NODE("Neg", ["x"], ["y"], name="neg_1")), (TROUBLE,), ["bad.onnx", "neg_1"]),
    ("undefined output", nodes(relu(), outputs=[value("z")]), (TROUBLE,), ["bad.onnx", "z"]),
    ("unknown operator", nodes(NODE("Frobnicate", ["x"], ["y"], name="frob_1")), (UNSUPPORTED,), ["bad.onnx", "frob_1", "Frobnicate"]),
    ("two unknown operators", nodes(NODE("Frob", ["x"], ["a"], name="frob_1"), NODE("Nicate", ["a"], ["y"], name="nic_2")),
     (UNSUPPORTED,), ["bad.onnx", "frob_1", "nic_2"]),
    ("unknown domain", nodes(NODE("Op", ["x"], ["y"], name="op_1", domain="some.where"), domains=["some.where"]),
     (UNSUPPORTED,), ["bad.onnx", "op_1", "some.where"]),
    ("opset from the future", nodes(relu(), opset=9999), ANY, ["bad.onnx", "9999"]),
    ("no graph", fixed(helper.make_model(helper.make_graph([], "g", [], [])).SerializeToString()[:4]), (TROUBLE,), ["bad.onnx"]),
    ("wrong number of inputs", nodes(NODE("Relu", ["x", "x", "x"], ["y"], name="relu_3")), ANY, ["bad.onnx", "relu_3"]),
    ("missing inputs", nodes(NODE("MatMul", ["x"], ["y"], name="mm_1")), ANY, ["bad.onnx", "mm_1"]),
    ("missing attribute", nodes(NODE("Cast", ["x"], ["y"], name="cast_1")), ANY, ["bad.onnx", "cast_1"]),
    ("attribute of the wrong type", nodes(NODE("Softmax", ["x"], ["y"], name="soft_1", axis="rows")), ANY, ["bad.onnx", "soft_1"]),
    ("axis out of range", nodes(NODE("Softmax", ["x"], ["y"], name="soft_2", axis=7)), ANY, ["bad.onnx", "soft_2"]),
    ("GGUF tensor with a dim of 0", zeroDimGguf, ANY, ["bad.gguf"]),
    ("matmul shapes", matmulMismatch, ANY, ["bad.onnx", "mm"]),
    ("weight too short", withWeight([2, 3], bytes(20)), (TROUBLE,), ["bad.onnx", "w"]),
    ("weight too long", withWeight([2, 3], bytes(28)), (TROUBLE,), ["bad.onnx", "w"]),
    ("weight of int4, one byte short", withWeight([3, 5], bytes(7), TensorProto.INT4), (TROUBLE,), ["bad.onnx", "w"]),
    ("weight of unknown type", withWeight([2, 3], bytes(24), 77), ANY, ["bad.onnx", "w"]),
    ("negative dim", withWeight([-2, 3], bytes(24)), (TROUBLE,), ["bad.onnx", "w"]),
    ("dims that overflow", withWeight([1 << 62, 1 << 62], bytes(24)), (TROUBLE,), ["bad.onnx", "w"]),
    ("dims of an exabyte", withWeight([1 << 58], bytes(24)), (TROUBLE,), ["bad.onnx", "w"]),
    ("external file missing", external("absent.bin"), (TROUBLE,), ["w", "absent.bin"]),
    ("external file by ..", external("../outside.bin"), (TROUBLE,), ["w", "outside.bin"]),
    ("external file by absolute path", external("/etc/hostname"), (TROUBLE,), ["w", "/etc/hostname"]),
    ("external file by symlink", external("link.bin", prepare=linkOut), (TROUBLE,), ["w", "link.bin"]),
    ("external file that is a FIFO", external("pipe.bin", prepare=fifo), (TROUBLE,), ["w", "pipe.bin"]),
    ("external file too short", external("inside.bin", length=4096), (TROUBLE,), ["w", "inside.bin"]),
    ("external offset past the end", external("inside.bin", offset=1 << 60), (TROUBLE,), ["w", "inside.bin"]),
    ("external offset negative", external("inside.bin", offset=-8), (TROUBLE,), ["w"]),
    ("external length that disagrees", external("inside.bin", length=20), (TROUBLE,), ["w"]),
]

# Models that compile or not as they please, but never take the machine down.
UNHARMED = [("constant of 2^70 elements", hugeConstant)]

# Models that look odd and must compile.
FINE = [("300 weights in 300 files", manyFiles), ("keys of external data that nobody knows", unknownKey)]
