"""BERT-base (Devlin et al. 2018) without pooler, and MiniLM-L6, which has the same form: post-norm blocks, a padding mask
made into a bias inside the graph."""

import dataclasses

import numpy as np
from onnx import TensorProto

from . import layers


@dataclasses.dataclass(frozen=True)
class Config:
    width: int = 768
    heads: int = 12
    depth: int = 12
    vocabulary: int = 30522
    positions: int = 512


FULL, SMALL = Config(), Config(width=32, heads=2, depth=2, vocabulary=100, positions=32)
MINILM = Config(width=384, depth=6)


def embed(g, ids, types, config):
    words = g.op("Gather", g.normal((config.vocabulary, config.width), 1), ids, axis=0)
    kinds = g.op("Gather", g.normal((2, config.width), 0.1), types, axis=0)
    all_ = g.initializer(np.arange(config.positions, dtype=np.int64)[None])
    position = g.op("Slice", all_, g.ints([0]), g.dim(ids, 1), g.ints([1]), g.ints([1]))
    places = g.op("Gather", g.normal((config.positions, config.width), 0.1), position, axis=0)
    return layers.layerNorm(g, g.op("Add", g.op("Add", words, kinds), places), config.width, 1e-12)


def bias(g, mask):
    """[B, T] of 0 and 1 -> [B, 1, 1, T] of the lowest f32 and 0."""
    wide = g.op("Unsqueeze", g.op("Unsqueeze", mask, g.ints([1])), g.ints([2]))
    absent = g.op("Sub", g.number(1), g.op("Cast", wide, to=TensorProto.FLOAT))
    return g.op("Mul", absent, g.number(np.finfo(np.float32).min))


def build(g, config):
    dims = ["batch", "tokens"]
    ids = g.input("input_ids", dims, TensorProto.INT64, limit=config.vocabulary)
    mask = g.input("attention_mask", dims, TensorProto.INT64, limit=2)
    types = g.input("token_type_ids", dims, TensorProto.INT64, limit=2)
    x, blocked = embed(g, ids, types, config), bias(g, mask)
    batch, tokens, width = g.dim(ids, 0), g.dim(ids, 1), config.width
    for _ in range(config.depth):
        q, kt, v = layers.separateQkv(g, x, batch, tokens, width, config.heads)
        mixed = layers.attend(g, q, kt, v, width // config.heads, lambda scores: g.op("Add", scores, blocked))
        mixed = layers.linear(g, layers.merge(g, mixed, batch, tokens, width), width, width)
        x = layers.layerNorm(g, g.op("Add", mixed, x), width, 1e-12)
        x = layers.layerNorm(g, g.op("Add", layers.mlp(g, x, width, 4 * width), x), width, 1e-12)
    g.output("last_hidden_state", x, [*dims, width])
