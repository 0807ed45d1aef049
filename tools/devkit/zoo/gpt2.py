"""GPT-2 (Radford et al. 2019) as transformers exports it, without cache and head: projections are Reshape, Gemm, Reshape,
the causal mask is sliced from a constant and applied by Where."""

import dataclasses
import math

import numpy as np
from onnx import TensorProto

from . import layers


@dataclasses.dataclass(frozen=True)
class Config:
    width: int = 768
    heads: int = 12
    depth: int = 12
    vocabulary: int = 50257
    positions: int = 1024


FULL, SMALL = Config(), Config(width=32, heads=2, depth=2, vocabulary=100, positions=32)


def project(g, x, batch, tokens, inputs, outputs, gain=1.0):
    """transformers' Conv1D: a Gemm over all tokens."""
    flat = g.reshape(x, [-1, inputs])
    product = g.op("Gemm", flat, g.normal((inputs, outputs), gain / math.sqrt(inputs)), g.normal((outputs,), 0.1))
    return g.reshape(product, [batch, tokens, outputs])


def attention(g, x, batch, tokens, visible, config):
    size = config.width // config.heads
    parts = g.split(project(g, x, batch, tokens, config.width, 3 * config.width), 3, axis=2)
    q, v = (layers.heads(g, parts[k], batch, tokens, config.heads, size) for k in (0, 2))
    kt = layers.heads(g, parts[1], batch, tokens, config.heads, size, (0, 2, 3, 1))
    lowest = g.number(np.finfo(np.float32).min)
    mixed = layers.attend(g, q, kt, v, size, lambda scores: g.op("Where", visible, scores, lowest))
    return project(g, layers.merge(g, mixed, batch, tokens, config.width), batch, tokens, config.width, config.width)


def block(g, x, batch, tokens, visible, config):
    width = config.width
    x = g.op("Add", attention(g, layers.layerNorm(g, x, width), batch, tokens, visible, config), x)
    y = project(g, layers.layerNorm(g, x, width), batch, tokens, width, 4 * width)
    return g.op("Add", x, project(g, layers.geluTanh(g, y), batch, tokens, 4 * width, width))


def build(g, config):
    dims, positions = ["batch", "tokens"], config.positions
    ids = g.input("input_ids", dims, TensorProto.INT64, limit=config.vocabulary)
    batch, tokens = g.dim(ids, 0), g.dim(ids, 1)
    words = g.op("Gather", g.normal((config.vocabulary, config.width), 1), ids, axis=0)
    count = g.op("Squeeze", tokens, g.ints([0]))
    place = g.op("Unsqueeze", g.op("Range", g.ints(0), count, g.ints(1)), g.ints([0]))
    x = g.op("Add", words, g.op("Gather", g.normal((positions, config.width), 0.1), place, axis=0))
    causal = g.initializer(np.tril(np.ones((positions, positions), bool))[None, None])
    rows = g.op("Slice", causal, g.ints([0]), tokens, g.ints([2]), g.ints([1]))
    visible = g.op("Slice", rows, g.ints([0]), tokens, g.ints([3]), g.ints([1]))
    for _ in range(config.depth):
        x = block(g, x, batch, tokens, visible, config)
    g.output("last_hidden_state", layers.layerNorm(g, x, config.width), [*dims, config.width])
