"""Decoder-only language models of every architecture that the compiler knows, with a few seeded random layers, as GGUF files;
and what they compute, in f64."""

import dataclasses

import numpy as np

from . import gguf_file


@dataclasses.dataclass
class Tiny:
    """Sizes and switches of one model. Odd counts on purpose; `types` are drawn from for matrices."""
    architecture: str
    interleaved: bool = False
    gelu: bool = False
    heads: int = 6
    kvHeads: int = 2
    headSize: int = 32
    hidden: int = 96
    feedForward: int = 160
    layers: int = 3
    vocabulary: int = 290
    rotated: int = 0  # 0: the whole head
    epsilon: float = 1e-6
    ropeBase: float = 10000.0
    linearFactor: float = 1.0
    hasFactors: bool = False  # rope_freqs
    window: int = 0
    isLocal: object = None  # layer -> whether it has the window
    localBase: float = 0.0
    bias: bool = False
    headNorms: bool = False
    postNorms: bool = False
    fused: bool = False  # attn_qkv, and ffn_up holds the gate too
    tied: bool = True
    scalesEmbedding: bool = False
    attentionSoftcap: float = 0.0
    logitSoftcap: float = 0.0
    experts: int = 0  # of every layer but the first
    used: int = 0
    types: tuple = ("F32", "F16", "BF16", "Q8_0", "Q4_0")


MODELS = [
    Tiny("llama", interleaved=True, tied=False, ropeBase=1e5, hasFactors=True),
    Tiny("llama", interleaved=True, heads=3, kvHeads=3, rotated=16, linearFactor=2.0, types=("Q4_0",)),
    Tiny("qwen2", bias=True, types=("Q8_0",)),
    Tiny("qwen3", headNorms=True, headSize=64, tied=False),
    Tiny("qwen3moe", headNorms=True, experts=6, used=3, types=("Q4_0",)),
    Tiny("llama", interleaved=True, experts=5, used=2, types=("BF16",)),
    Tiny("phi3", fused=True, window=5, isLocal=lambda layer: True, types=("Q8_0",)),
    Tiny("phi3", fused=True, rotated=24, tied=False, types=("F16",)),
    Tiny("gemma2", gelu=True, postNorms=True, scalesEmbedding=True, window=5, isLocal=lambda layer: layer % 2 == 0,
         attentionSoftcap=20.0, logitSoftcap=15.0),
    Tiny("gemma3", gelu=True, postNorms=True, headNorms=True, scalesEmbedding=True, window=5, layers=7, ropeBase=1e6, localBase=1e4,
         isLocal=lambda layer: layer % 6 != 5, kvHeads=1),
]


class Decoder:
    """Makes the weights, writes the file, and evaluates it."""

    def __init__(self, tiny, seed=0):
        self.t = tiny
        self.draw = np.random.default_rng(seed)
        self.tensors, self.w = {}, {}
        self.build()

    def matrix(self, name, rows, columns, scale=None, experts=0):
        kinds = [kind for kind in self.t.types if columns % 32 == 0 or kind in ("F32", "F16", "BF16")]
        kind = kinds[self.draw.integers(len(kinds))]
        data, self.w[name] = gguf_file.randomMatrix(self.draw, kind, rows * (experts or 1), columns, scale or columns**-0.5)
        self.tensors[name + ".weight"] = (kind, [experts, rows, columns] if experts else [rows, columns], data)

    def isMixture(self, layer):
        return self.t.experts > 0 and layer > 0

    def vector(self, name, n, around, scale):
        values = (around + scale * self.draw.standard_normal(n)).astype(np.float32)
        self.w[name] = values
        self.tensors[name if name.endswith(".bias") else name + ".weight"] = ("F32", [n], values.tobytes())

    def buildAttention(self, block):
        t = self.t
        queries, keys = t.heads * t.headSize, t.kvHeads * t.headSize
        if t.fused:
            self.matrix(block + "attn_qkv", queries + 2 * keys, t.hidden)
        else:
            for name, rows in (("attn_q", queries), ("attn_k", keys), ("attn_v", keys)):
                self.matrix(block + name, rows, t.hidden)
                if t.bias:
                    self.vector(block + name + ".bias", rows, 0, 0.3)
        if t.headNorms:
            self.vector(block + "attn_q_norm", t.headSize, 1, 0.2)
            self.vector(block + "attn_k_norm", t.headSize, 1, 0.2)
        self.matrix(block + "attn_output", t.hidden, queries)

    def buildMixture(self, block):
        t = self.t
        self.matrix(block + "ffn_gate_inp", t.experts, t.hidden)
        for name, rows, columns in (("gate", t.feedForward, t.hidden), ("up", t.feedForward, t.hidden),
                                    ("down", t.hidden, t.feedForward)):
            self.matrix(f"{block}ffn_{name}_exps", rows, columns, experts=t.experts)

    def build(self):
        t = self.t
        self.matrix("token_embd", t.vocabulary, t.hidden, 1.0)
        for layer in range(t.layers):
            block = f"blk.{layer}."
            self.vector(block + "attn_norm", t.hidden, 1, 0.2)
            self.buildAttention(block)
            self.vector(block + "ffn_norm", t.hidden, 1, 0.2)
            if self.isMixture(layer):
                self.buildMixture(block)
            else:
                if not t.fused:
                    self.matrix(block + "ffn_gate", t.feedForward, t.hidden)
                self.matrix(block + "ffn_up", t.feedForward * (2 if t.fused else 1), t.hidden)
                self.matrix(block + "ffn_down", t.hidden, t.feedForward)
            if t.postNorms:
                self.vector(block + "post_attention_norm", t.hidden, 1, 0.2)
                self.vector(block + "post_ffw_norm", t.hidden, 1, 0.2)
        self.vector("output_norm", t.hidden, 1, 0.2)
        if not t.tied:
            self.matrix("output", t.vocabulary, t.hidden)
        if t.hasFactors:
            self.vector("rope_freqs", (t.rotated or t.headSize) // 2, 3, 0.5)

    def write(self, path):
        t, a = self.t, self.t.architecture
        # 256 byte-level tokens in GPT-2's alphabet, then fillers that no text needs.
        alphabet = [*range(33, 127), *range(161, 173), *range(174, 256)]
        alphabet += [256 + i for i in range(256 - len(alphabet))]
        tokens = [chr(code) for code in alphabet] + [f"<filler{i}>" for i in range(t.vocabulary - 256)]
        values = {"general.architecture": a, f"{a}.context_length": 256, f"{a}.embedding_length": t.hidden,
                  f"{a}.block_count": t.layers, f"{a}.feed_forward_length": t.feedForward, f"{a}.attention.head_count": t.heads,
                  f"{a}.attention.head_count_kv": t.kvHeads, f"{a}.attention.key_length": t.headSize,
                  f"{a}.attention.value_length": t.headSize, f"{a}.attention.layer_norm_rms_epsilon": t.epsilon,
                  f"{a}.rope.freq_base": t.ropeBase, "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
                  "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": [np.int32(1)] * t.vocabulary,
                  "tokenizer.ggml.merges": ["a b"]}
        if t.experts:
            values |= {f"{a}.expert_count": t.experts, f"{a}.expert_used_count": t.used,
                       f"{a}.expert_feed_forward_length": t.feedForward}
        if t.rotated:
            values[f"{a}.rope.dimension_count"] = t.rotated
        if t.linearFactor != 1:
            values |= {f"{a}.rope.scaling.type": "linear", f"{a}.rope.scaling.factor": t.linearFactor}
        if t.window:
            values[f"{a}.attention.sliding_window"] = t.window
        if t.attentionSoftcap:
            values |= {f"{a}.attn_logit_softcapping": t.attentionSoftcap, f"{a}.final_logit_softcapping": t.logitSoftcap}
        gguf_file.write(path, values | self.furtherValues(), self.tensors)

    def furtherValues(self):
        return {}

    def cacheShapes(self):
        """{name without "_cache": (heads, size)}"""
        return {f"{name}.{layer}": (self.t.kvHeads, self.t.headSize) for layer in range(self.t.layers) for name in ("key", "value")}

    # --- what it computes ---

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.t.epsilon) * self.w[name].astype(np.float64)

    def rotate(self, x, layer):
        t = self.t
        rotated = t.rotated or t.headSize
        isLocal = bool(t.window and t.localBase and t.isLocal(layer))
        base = t.localBase if isLocal else t.ropeBase
        frequency = base ** (-np.arange(0, rotated, 2) / rotated)
        if not isLocal:
            frequency = frequency / t.linearFactor
            if t.hasFactors:
                frequency = frequency / self.w["rope_freqs"].astype(np.float64)
        angle = np.arange(len(x))[:, None, None] * frequency
        cos, sin = np.cos(angle), np.sin(angle)
        y = x.copy()
        if t.interleaved:
            first, second = x[..., 0:rotated:2], x[..., 1:rotated:2]
            y[..., 0:rotated:2], y[..., 1:rotated:2] = first * cos - second * sin, second * cos + first * sin
        else:
            half = rotated // 2
            first, second = x[..., :half], x[..., half:rotated]
            y[..., :half], y[..., half:rotated] = first * cos - second * sin, second * cos + first * sin
        return y

    def product(self, x, name):
        y = x @ self.w[name].astype(np.float64).T
        return y + self.w[name + ".bias"] if name + ".bias" in self.w else y

    def attention(self, x, layer):
        t, block = self.t, f"blk.{layer}."
        rows, queries, keys = len(x), t.heads * t.headSize, t.kvHeads * t.headSize
        if t.fused:
            q, k, v = np.split(self.product(x, block + "attn_qkv"), [queries, queries + keys], axis=1)
        else:
            q, k, v = (self.product(x, block + name) for name in ("attn_q", "attn_k", "attn_v"))
        q, k, v = (y.reshape(rows, -1, t.headSize) for y in (q, k, v))
        if t.headNorms:
            q, k = self.norm(q, block + "attn_q_norm"), self.norm(k, block + "attn_k_norm")
        q, k = self.rotate(q, layer), self.rotate(k, layer)
        k, v = (np.repeat(y, t.heads // t.kvHeads, axis=1) for y in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(t.headSize)
        if t.attentionSoftcap:
            scores = np.tanh(scores / t.attentionSoftcap) * t.attentionSoftcap
        distance = np.arange(rows)[:, None] - np.arange(rows)
        hidden = distance < 0
        if t.window and t.isLocal(layer):
            hidden |= distance >= t.window
        scores[:, hidden] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return self.product(np.einsum("hqk,khd->qhd", weights, v).reshape(rows, queries), block + "attn_output")

    def feedForwardOf(self, x, layer):
        t, block = self.t, f"blk.{layer}."
        up = self.product(x, block + "ffn_up")
        gate, up = np.split(up, 2, axis=1) if t.fused else (self.product(x, block + "ffn_gate"), up)
        if t.gelu:
            gate = 0.5 * gate * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))
        else:
            gate = gate / (1 + np.exp(-gate))
        return self.product(gate * up, block + "ffn_down")

    def route(self, logits, block):
        """The experts that softmax of one row's logits puts first, and weights by it that add up to 1."""
        best = np.argsort(-logits, kind="stable")[:self.t.used]
        shares = np.exp(logits[best] - logits[best].max())
        return best, shares / shares.sum()

    def mixtureOf(self, x, layer):
        t, block = self.t, f"blk.{layer}."
        scores = self.product(x, block + "ffn_gate_inp")
        gate, up, down = (self.w[f"{block}ffn_{name}_exps"].astype(np.float64).reshape(t.experts, -1, columns)
                          for name, columns in (("gate", t.hidden), ("up", t.hidden), ("down", t.feedForward)))
        y = np.zeros_like(x)
        for row, score in enumerate(scores):
            for expert, share in zip(*self.route(score, block)):
                opened = gate[expert] @ x[row]
                y[row] += share * (down[expert] @ (opened / (1 + np.exp(-opened)) * (up[expert] @ x[row])))
        return y

    def logits(self, tokens):
        """[len(tokens), vocabulary]: those of a sequence, in f64."""
        t = self.t
        x = self.w["token_embd"][tokens].astype(np.float64)
        if t.scalesEmbedding:
            x = x * np.sqrt(t.hidden)
        for layer in range(t.layers):
            block = f"blk.{layer}."
            y = self.attention(self.norm(x, block + "attn_norm"), layer)
            x = x + (self.norm(y, block + "post_attention_norm") if t.postNorms else y)
            y = (self.mixtureOf if self.isMixture(layer) else self.feedForwardOf)(self.norm(x, block + "ffn_norm"), layer)
            x = x + (self.norm(y, block + "post_ffw_norm") if t.postNorms else y)
        y = self.product(self.norm(x, "output_norm"), "token_embd" if t.tied else "output")
        return np.tanh(y / t.logitSoftcap) * t.logitSoftcap if t.logitSoftcap else y
