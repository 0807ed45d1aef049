"""Swin-T (Liu et al. 2021) as torchvision writes it: channels last, windows by Reshape and Transpose, shifted windows by
rolling (Slice and Concat) with a mask, patch merging by four strided slices."""

import dataclasses

import numpy as np

from . import layers


@dataclasses.dataclass(frozen=True)
class Config:
    image: int = 224
    patch: int = 4
    width: int = 96
    depths: tuple = (2, 2, 6, 2)
    heads: tuple = (3, 6, 12, 24)
    window: int = 7
    classes: int = 1000


FULL, SMALL = Config(), Config(image=56, width=16, depths=(2, 2), heads=(1, 2), classes=10)


def roll(g, x, shift):
    """torch.roll(x, (shift, shift), (1, 2))"""
    for axis in (1, 2):
        x = g.op("Concat", g.slice(x, axis, -shift, 2**62), g.slice(x, axis, 0, -shift), axis=axis)
    return x


def shiftMask(side, window, shift):
    """[windows, T, T]: -100 between pixels that only the roll brought together."""
    regions, count = np.zeros((side, side)), 0
    bands = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
    for rows in bands:
        for columns in bands:
            regions[rows, columns] = count
            count += 1
    per = side // window
    flat = regions.reshape(per, window, per, window).transpose(0, 2, 1, 3).reshape(per * per, window * window)
    return np.where(flat[:, None] != flat[:, :, None], -100.0, 0.0).astype(np.float32)


def windowAttention(g, x, batch, side, width, count, window, shift):
    """x [B, side, side, C], normed."""
    per, tokens, size = side // window, window * window, width // count
    if not g.isModern:  # torchvision pads to whole windows, also by nothing
        x = g.op("Pad", x, g.ints([0] * 8), g.number(0))
    if shift:
        x = roll(g, x, -shift)
    x = g.op("Transpose", g.reshape(x, [batch, per, window, per, window, width]), perm=[0, 1, 3, 2, 4, 5])
    x = g.reshape(x, [-1, tokens, width])
    windows = g.dim(x, 0)
    q, k, v = layers.fusedQkv(g, x, windows, tokens, width, count)
    kt = g.op("Transpose", k, perm=[0, 1, 3, 2])
    bias = g.normal((1, count, tokens, tokens), 0.5)

    def mask(scores):
        scores = g.op("Add", scores, bias)
        if not shift:
            return scores
        blocked = g.initializer(shiftMask(side, window, shift)[None, :, None])
        grouped = g.reshape(scores, [batch, per * per, count, tokens, tokens])
        return g.reshape(g.op("Add", grouped, blocked), [-1, count, tokens, tokens])

    y = layers.merge(g, layers.attend(g, q, kt, v, size, mask, scaleQueries=True), windows, tokens, width)
    y = layers.linear(g, y, width, width)
    y = g.op("Transpose", g.reshape(y, [batch, per, per, window, window, width]), perm=[0, 1, 3, 2, 4, 5])
    y = g.reshape(y, [batch, side, side, width])
    return roll(g, y, shift) if shift else y


def merging(g, x, width):
    """Four neighbours become one pixel of twice the channels."""
    parts = [g.slice(g.slice(x, 1, row, 2**62, 2), 2, column, 2**62, 2) for column in (0, 1) for row in (0, 1)]
    x = layers.layerNorm(g, g.op("Concat", *parts, axis=-1), 4 * width)
    return layers.linear(g, x, 4 * width, 2 * width, bias=False)


def build(g, config):
    width, side = config.width, config.image // config.patch
    image = g.input("image", ["batch", 3, config.image, config.image])
    batch = g.dim(image, 0)
    weight = g.normal((width, 3, config.patch, config.patch), 1 / (config.patch * 3**0.5))
    x = g.op("Conv", image, weight, g.normal((width,), 0.1), kernel_shape=[config.patch] * 2, strides=[config.patch] * 2)
    x = layers.layerNorm(g, g.op("Transpose", x, perm=[0, 2, 3, 1]), width)
    for stage, depth in enumerate(config.depths):
        if stage:
            x, width, side = merging(g, x, width), 2 * width, side // 2
        for block in range(depth):
            shift = config.window // 2 if block % 2 and side > config.window else 0
            y = layers.layerNorm(g, x, width)
            x = g.op("Add", x, windowAttention(g, y, batch, side, width, config.heads[stage], config.window, shift))
            x = g.op("Add", x, layers.mlp(g, layers.layerNorm(g, x, width), width, 4 * width))
    x = g.op("Transpose", layers.layerNorm(g, x, width), perm=[0, 3, 1, 2])
    logits = layers.classifier(g, g.op("GlobalAveragePool", x), width, config.classes)
    g.output("logits", logits, ["batch", config.classes])
