"""Vision Transformer ViT-B/16 (Dosovitskiy et al. 2020): patches by a strided convolution, a class token, pre-norm blocks."""

import dataclasses

from . import layers


@dataclasses.dataclass(frozen=True)
class Config:
    image: int = 224
    patch: int = 16
    width: int = 768
    heads: int = 12
    depth: int = 12
    classes: int = 1000


FULL, SMALL = Config(), Config(image=32, patch=8, width=32, heads=2, depth=2, classes=10)


def attention(g, x, batch, tokens, config):
    size = config.width // config.heads
    q, k, v = layers.fusedQkv(g, x, batch, tokens, config.width, config.heads)
    kt = g.op("Transpose", k, perm=[0, 1, 3, 2])
    mixed = layers.attend(g, q, kt, v, size, scaleQueries=True)
    return layers.linear(g, layers.merge(g, mixed, batch, tokens, config.width), config.width, config.width)


def build(g, config):
    width, side = config.width, config.image // config.patch
    tokens = side * side + 1
    image = g.input("image", ["batch", 3, config.image, config.image])
    batch = g.dim(image, 0)
    weight = g.normal((width, 3, config.patch, config.patch), 1 / (config.patch * 3**0.5))
    x = g.op("Conv", image, weight, g.normal((width,), 0.1), kernel_shape=[config.patch] * 2, strides=[config.patch] * 2)
    x = g.op("Transpose", g.reshape(x, [batch, width, side * side]), perm=[0, 2, 1])
    token = g.op("Expand", g.normal((1, 1, width), 1), g.op("Concat", batch, g.ints([1]), g.ints([width]), axis=0))
    x = g.op("Add", g.op("Concat", token, x, axis=1), g.normal((1, tokens, width), 0.5))
    for _ in range(config.depth):
        x = g.op("Add", x, attention(g, layers.layerNorm(g, x, width, 1e-6), batch, tokens, config))
        x = g.op("Add", x, layers.mlp(g, layers.layerNorm(g, x, width, 1e-6), width, 4 * width))
    first = g.op("Gather", layers.layerNorm(g, x, width, 1e-6), g.ints(0), axis=1)
    g.output("logits", layers.gemm(g, first, width, config.classes), ["batch", config.classes])
