"""The encoder of Whisper-tiny (Radford et al. 2022): two 1-D convolutions over 30 s of mel frames, then pre-norm blocks."""

import dataclasses
import math

from . import layers


@dataclasses.dataclass(frozen=True)
class Config:
    bands: int = 80
    frames: int = 3000
    width: int = 384
    heads: int = 6
    depth: int = 4


FULL, SMALL = Config(), Config(bands=16, frames=100, width=32, heads=2, depth=2)


def conv1d(g, x, inputs, outputs, stride):
    weight = g.normal((outputs, inputs, 3), layers.RELU_GAIN / math.sqrt(3 * inputs))
    return g.op("Conv", x, weight, g.normal((outputs,), 0.1), kernel_shape=[3], strides=[stride], pads=[1, 1])


def attention(g, x, batch, tokens, config):
    """As separateQkv, but the scale is on the queries' projection and the keys have no bias."""
    width, size = config.width, config.width // config.heads
    q = g.op("Mul", layers.linear(g, x, width, width), g.number(size**-0.5))
    k, v = layers.linear(g, x, width, width, bias=False), layers.linear(g, x, width, width)
    q, v = (layers.heads(g, part, batch, tokens, config.heads, size) for part in (q, v))
    kt = layers.heads(g, k, batch, tokens, config.heads, size, (0, 2, 3, 1))
    mixed = g.op("MatMul", g.op("Softmax", g.op("MatMul", q, kt), axis=-1), v)
    return layers.linear(g, layers.merge(g, mixed, batch, tokens, width), width, width)


def build(g, config):
    width, tokens = config.width, config.frames // 2
    mel = g.input("input_features", ["batch", config.bands, config.frames])
    batch = g.dim(mel, 0)
    x = layers.gelu(g, conv1d(g, mel, config.bands, width, 1))
    x = layers.gelu(g, conv1d(g, x, width, width, 2))
    x = g.op("Add", g.op("Transpose", x, perm=[0, 2, 1]), g.normal((tokens, width), 0.5))
    for _ in range(config.depth):
        x = g.op("Add", x, attention(g, layers.layerNorm(g, x, width), batch, tokens, config))
        x = g.op("Add", x, layers.mlp(g, layers.layerNorm(g, x, width), width, 4 * width))
    g.output("last_hidden_state", layers.layerNorm(g, x, width), ["batch", tokens, width])
