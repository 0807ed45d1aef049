"""Tiny random decoders as exporters write them in ONNX: past keys and values in, present ones out, with the patterns of optimum
(attention in pieces, rotary embedding from position_ids, a mask from ranges; or merged, with and without past keys), of dynamo (the same on opset 23's Attention), and of
onnxruntime-genai (GroupQueryAttention)."""

import json

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from . import checkpoints

HEADS, KV, SIZE, HIDDEN, INNER, LAYERS = 6, 2, 16, 96, 64, 2
VOCABULARY, CONTEXT = checkpoints.VOCABULARY, 64


class Graph:
    """A decoder under construction; `window` (0: none) is what GroupQueryAttention's layers see."""

    def __init__(self, pattern, seed=0, window=0, hurt=None, hasPast=True, prefix="", hasSlopes=False):
        self.pattern, self.window, self.hurt, self.hasPast, self.prefix = pattern, window, hurt, hasPast, prefix
        self.hasSlopes = hasSlopes  # ALiBi
        self.draw = np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], 0

    def op(self, kind, *inputs, outputs=1, domain="", **attributes):
        self.count += 1
        names = [f"{self.prefix}{kind}_{self.count}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=f"{self.prefix}{kind}_{self.count}", domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value, kind=np.int64):
        self.count += 1
        name = f"{self.prefix}constant_{self.count}"
        self.weights.append(numpy_helper.from_array(np.array(value, kind), name))
        return name

    def matrix(self, rows, columns):
        return self.constant(self.draw.standard_normal((rows, columns)) * 1.5 * rows**-0.5, np.float32)

    def norm(self, x):
        scale = self.constant(1 + 0.2 * self.draw.standard_normal(HIDDEN), np.float32)
        if self.pattern == "genai":
            return self.op("SimplifiedLayerNormalization", x, scale, axis=-1, epsilon=1e-6, stash_type=1)
        square = self.op("ReduceMean", self.op("Pow", x, self.constant(2, np.float32)), self.constant([-1]), keepdims=1)
        root = self.op("Sqrt", self.op("Add", square, self.constant(1e-6, np.float32)))
        return self.op("Mul", scale, self.op("Div", x, root))

    def heads(self, x, count):
        shape = self.op("Concat", self.batch, self.sequence, self.constant([count]), self.constant([SIZE]), axis=0)
        return self.op("Transpose", self.op("Reshape", x, shape), perm=[0, 2, 1, 3])

    def rotated(self, x):
        half = SIZE // 2
        first = self.op("Slice", x, self.constant([0]), self.constant([half]), self.constant([3]), self.constant([1]))
        second = self.op("Slice", x, self.constant([half]), self.constant([2**63 - 1]), self.constant([3]), self.constant([1]))
        turned = self.op("Concat", self.op("Neg", second), first, axis=-1)
        return self.op("Add", self.op("Mul", x, self.cos), self.op("Mul", turned, self.sin))

    def repeated(self, x):
        """[B, KV, T, D] with each head HEADS / KV times."""
        wide = self.op("Unsqueeze", x, self.constant([2]))
        total = self.op("Shape", x, start=2, end=3)
        groups = self.op("Concat", self.batch, self.constant([KV, HEADS // KV]), total, self.constant([SIZE]), axis=0)
        merged = self.op("Concat", self.batch, self.constant([HEADS]), total, self.constant([SIZE]), axis=0)
        return self.op("Reshape", self.op("Expand", wide, groups), merged)

    def prepare(self):
        """What all layers share."""
        self.batch, self.sequence = (self.op("Shape", "input_ids", start=i, end=i + 1) for i in (0, 1))
        if self.pattern == "genai":
            total = self.op("Cast", self.op("Shape", "attention_mask", start=1, end=2), to=TensorProto.INT32)
            self.total = self.op("Squeeze", total, self.constant([0]))
            count = self.op("Sub", self.op("ReduceSum", "attention_mask", self.constant([1]), keepdims=0), self.constant([1]))
            self.lengths = self.op("Cast", count, to=TensorProto.INT32)
            angle = np.arange(CONTEXT)[:, None] * 1e4 ** (-np.arange(0, SIZE, 2) / SIZE)
            self.cos, self.sin = self.constant(np.cos(angle), np.float32), self.constant(np.sin(angle), np.float32)
            return
        frequencies = self.constant((1e4 ** (-np.arange(0, SIZE, 2) / SIZE))[None, :, None], np.float32)
        places = self.op("Cast", self.op("Unsqueeze", "position_ids", self.constant([1])), to=TensorProto.FLOAT)
        angle = self.op("Transpose", self.op("MatMul", frequencies, places), perm=[0, 2, 1])
        angle = self.op("Unsqueeze", self.op("Concat", angle, angle, axis=-1), self.constant([1]))
        self.cos, self.sin = self.op("Cos", angle), self.op("Sin", angle)
        past = self.op("Shape", "past_key_values.0.key", start=2, end=3) if self.hasPast else self.constant([0])
        end = self.op("Add", past, self.sequence)
        scalar = lambda value: self.op("Squeeze", value, self.constant([0]))
        rows = self.op("Unsqueeze", self.op("Range", scalar(past), scalar(end), self.constant(1)), self.constant([1]))
        keys = self.op("Unsqueeze", self.op("Range", self.constant(0), scalar(end), self.constant(1)), self.constant([0]))
        seen = self.op("LessOrEqual", keys, rows)
        padding = self.op("Unsqueeze", self.op("Cast", "attention_mask", to=TensorProto.BOOL), self.constant([1, 2]))
        seen = self.op("And", self.op("Unsqueeze", seen, self.constant([0, 1])), padding)
        lowest = float(np.finfo(np.float32).min)
        self.mask = self.op("Where", seen, self.constant(0, np.float32), self.constant(lowest, np.float32))
        if self.hasSlopes:  # as BLOOM has them: of keys' places, which for a softmax is the same as of distances
            slopes = self.constant(2.0 ** -np.arange(1, HEADS + 1).reshape(1, HEADS, 1, 1), np.float32)
            self.mask = self.op("Add", self.mask, self.op("Mul", slopes, self.op("Cast", keys, to=TensorProto.FLOAT)))
        if self.hurt == "distance":  # scores that fall with the distance's square, which no paged step knows
            distance = self.op("Cast", self.op("Sub", keys, rows), to=TensorProto.FLOAT)
            self.mask = self.op("Add", self.mask, self.op("Mul", self.op("Mul", distance, distance), self.constant(-0.1, np.float32)))

    def attention(self, x, layer):
        q, k, v = (self.op("MatMul", x, self.matrix(HIDDEN, count * SIZE)) for count in (HEADS, KV, KV))
        past = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        present = [f"present.{layer}.{part}" for part in ("key", "value")]
        if self.pattern == "genai":
            y, *grown = self.op("GroupQueryAttention", q, k, v, *past, self.lengths, self.total, self.cos, self.sin, outputs=3,
                                domain="com.microsoft", num_heads=HEADS, kv_num_heads=KV, do_rotary=1, local_window_size=self.window or -1)
        else:
            q, k, v = self.rotated(self.heads(q, HEADS)), self.rotated(self.heads(k, KV)), self.heads(v, KV)
            grown = [self.op("Concat", old, new, axis=-2) for old, new in zip(past, (k, v))] if self.hasPast else (k, v)
            if self.pattern == "dynamo":
                y = self.op("Attention", q, *grown, self.mask, scale=SIZE**-0.5)
            else:
                k, v = (self.repeated(value) for value in grown)
                scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
                scores = self.op("Add", self.op("Mul", scores, self.constant(SIZE**-0.5, np.float32)), self.mask)
                y = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
            shape = self.op("Concat", self.batch, self.sequence, self.constant([HEADS * SIZE]), axis=0)
            y = self.op("Reshape", self.op("Transpose", y, perm=[0, 2, 1, 3]), shape)
        for name, value in zip(present, grown):
            self.nodes.append(helper.make_node("Identity", [value], [self.prefix + name]))
        return self.op("MatMul", y, self.matrix(HEADS * SIZE, HIDDEN))

    def build(self):
        self.prepare()
        x = self.op("Gather", self.constant(self.draw.standard_normal((VOCABULARY, HIDDEN)), np.float32), "input_ids")
        for layer in range(LAYERS):
            x = self.op("Add", x, self.attention(self.norm(x), layer))
            if self.hurt == "neighbours" and layer == 1:  # each token takes something of the sequence's sum
                x = self.op("Add", x, self.op("ReduceMean", x, self.constant([1]), keepdims=1))
            y = self.norm(x)
            gate, up = (self.op("MatMul", y, self.matrix(HIDDEN, INNER)) for _ in range(2))
            y = self.op("Mul", self.op("Mul", gate, self.op("Sigmoid", gate)), up)
            x = self.op("Add", x, self.op("MatMul", y, self.matrix(INNER, HIDDEN)))
        logits = self.op("MatMul", self.norm(x), self.matrix(HIDDEN, VOCABULARY))
        self.nodes.append(helper.make_node("Identity", [logits], [self.prefix + "logits"]))

    def model(self):
        self.build()
        return self.wrapped()

    def mergedModel(self, seed):
        """An If over use_cache_branch, the other branch being the same decoder that knows no past."""
        branches = []
        for hasPast in (True, False):
            branch = Graph(self.pattern, seed, self.window, hasPast=hasPast, prefix="with/" if hasPast else "without/")
            branch.build()
            outputs = [helper.make_tensor_value_info(branch.prefix + each.name, each.type.tensor_type.elem_type, None)
                       for each in self.wrapped().graph.output]
            branches.append(helper.make_graph(branch.nodes, branch.prefix[:-1], [], outputs))
            self.weights += branch.weights
        made = self.wrapped()
        choice = helper.make_node("If", ["use_cache_branch"], [each.name for each in made.graph.output], name="choice",
                                  then_branch=branches[0], else_branch=branches[1])
        made.graph.node.append(choice)
        made.graph.input.append(helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1]))
        return made

    def wrapped(self):
        whole, part = TensorProto.INT64, TensorProto.FLOAT
        total = "total_sequence_length" if self.pattern == "genai" else "past_sequence_length + sequence_length"
        inputs = [("input_ids", whole, ["batch_size", "sequence_length"]), ("attention_mask", whole, ["batch_size", total])]
        if self.pattern != "genai":
            inputs.append(("position_ids", whole, ["batch_size", "sequence_length"]))
        outputs = [("logits", part, ["batch_size", "sequence_length", VOCABULARY])]
        for layer in range(LAYERS):
            for name in ("key", "value"):
                inputs.append((f"past_key_values.{layer}.{name}", part, ["batch_size", KV, "past_sequence_length", SIZE]))
                outputs.append((f"present.{layer}.{name}", part, ["batch_size", KV, total, SIZE]))
        graph = helper.make_graph(self.nodes, "decoder", [helper.make_tensor_value_info(*each) for each in inputs],
                                  [helper.make_tensor_value_info(*each) for each in outputs], self.weights)
        opsets = [helper.make_opsetid("", 23 if self.pattern == "dynamo" else 18), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def write(folder, pattern, isMerged=False, **settings):
    """model.onnx with a configuration and a tokenizer beside it."""
    folder.mkdir(parents=True)
    graph = Graph(pattern, **settings)
    (folder / "model.onnx").write_bytes((graph.mergedModel(seed=0) if isMerged else graph.model()).SerializeToString())
    (folder / "tokenizer.json").write_text(json.dumps(checkpoints.tokenizer()))
    if pattern == "genai":
        settings = {"model": {"type": "llama", "context_length": CONTEXT}}
        (folder / "genai_config.json").write_text(json.dumps(settings))
    else:
        (folder / "config.json").write_text(json.dumps({"model_type": "llama", "max_position_embeddings": CONTEXT}))
    return folder / "model.onnx"


def pastFeeds(pattern, tokens, isMerged=False):
    """The model's own inputs for one sequence from its start."""
    tokens = np.array([tokens], np.int64)
    empty = np.zeros((1, KV, 0, SIZE), np.float32)
    feeds = {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}
    if isMerged:
        feeds["use_cache_branch"] = np.array([False])
    if pattern != "genai":
        feeds["position_ids"] = np.arange(tokens.shape[1], dtype=np.int64)[None]
    return feeds | {f"past_key_values.{layer}.{name}": empty for layer in range(LAYERS) for name in ("key", "value")}
