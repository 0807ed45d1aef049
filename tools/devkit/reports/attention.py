"""Attention and its masks."""

import numpy as np

from ..questions import Question, normal, op
from .cases import case


@case
def attention_causal_of_one_query_ort29020():
    q, k, v = normal(17, 1, 1, 1, 4), normal(18, 1, 1, 5, 4), normal(19, 1, 1, 5, 4)
    return Question(op("Attention", "q k v", is_causal=1), {"q": q, "k": k, "v": v}, {"y": v[:, :, :1]}, 1e-6, opset=23)


@case
def attention_softcap_before_mask_onnx7867():
    q, k, v = normal(20, 1, 1, 2, 4), normal(21, 1, 1, 5, 4), normal(22, 1, 1, 5, 4)
    mask = np.where([[1, 0, 1, 0, 1], [0, 1, 1, 1, 0]], 0, -np.inf).astype(np.float32)
    scores = 3 * np.tanh(q.astype(np.float64) @ k.swapaxes(-1, -2) / 2 / 3) + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ v
    return Question(op("Attention", "q k v mask", softcap=3.0), {"q": q, "k": k, "v": v, "mask": mask}, {"y": want.astype(np.float32)}, 1e-6, opset=23)


@case
def masked_row_poisons_no_other_transformers17306():
    """A row whose scores are all -inf: the others keep their values."""
    x = normal(23, 3, 4)
    x[1] = -np.inf
    rest = np.exp(x[[0, 2]].astype(np.float64))
    want = rest / rest.sum(-1, keepdims=True)
    nodes = [op("Softmax", "x", "s", axis=-1), op("Gather", "s rows", axis=0)]
    return Question(nodes, {"x": x, "rows": np.array([0, 2])}, {"y": want.astype(np.float32)}, 1e-6)


@case
def rotary_interleaved_and_partial_ort29261():
    """Turned pairs are neighbours, and only the first 4 of 8 elements turn: a fusion with attention must keep both."""
    q, k, v = normal(24, 1, 2, 3, 8), normal(25, 1, 2, 3, 8), normal(26, 1, 2, 3, 8)
    angle = np.arange(3)[:, None] * np.array([1.0, 0.25])
    cos, sin = np.cos(angle).astype(np.float32)[None], np.sin(angle).astype(np.float32)[None]

    def turned(x):
        a, b, rest = x[..., 0:4:2].astype(np.float64), x[..., 1:4:2], x[..., 4:]
        pairs = np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1)
        return np.concatenate([pairs.reshape(*x.shape[:-1], 4), rest], axis=-1)

    scores = turned(q) @ turned(k).swapaxes(-1, -2) / np.sqrt(8)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ v
    nodes = [op("RotaryEmbedding", f"{name} cos sin", f"{name}r", interleaved=1, rotary_embedding_dim=4) for name in "qk"] + [op("Attention", "qr kr v")]
    return Question(nodes, {"q": q, "k": k, "v": v, "cos": cos, "sin": sin}, {"y": want.astype(np.float32)}, 1e-5, opset=23)
