"""A one-stage detector of YOLOv8's form: CSP blocks with Split and Concat, pyramid pooling, a head per scale whose box
sides are expectations over 16 bins, decoded to pixels inside the graph."""

import dataclasses

import numpy as np

from . import layers

BINS = 16
STRIDES = (8, 16, 32)


@dataclasses.dataclass(frozen=True)
class Config:
    image: int = 640
    widths: tuple = (16, 32, 64, 128, 256)
    depths: tuple = (1, 2, 2, 1)
    classes: int = 80


FULL, SMALL = Config(), Config(image=64, widths=(8, 8, 16, 16, 24), depths=(1, 1, 1, 1), classes=4)


def unit(g, x, inputs, outputs, kernel=1, stride=1):
    return layers.silu(g, layers.convNorm(g, x, inputs, outputs, kernel, stride, gain=layers.RELU_GAIN))


def csp(g, x, inputs, outputs, count, shortcut=True):
    """C2f: half of the channels pass through `count` bottlenecks, and every intermediate joins the result."""
    half = outputs // 2
    parts = g.split(unit(g, x, inputs, outputs), 2, axis=1)
    for _ in range(count):
        y = unit(g, unit(g, parts[-1], half, half, 3), half, half, 3)
        parts.append(g.op("Add", parts[-1], y) if shortcut else y)
    return unit(g, g.op("Concat", *parts, axis=1), half * len(parts), outputs)


def pyramidPool(g, x, channels):
    parts = [unit(g, x, channels, channels // 2)]
    for _ in range(3):
        parts.append(g.op("MaxPool", parts[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2]))
    return unit(g, g.op("Concat", *parts, axis=1), 2 * channels, channels)


def upsample(g, x):
    scales = g.constant([1, 1, 2, 2], np.float32)
    return g.op("Resize", x, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")


def backbone(g, x, config):
    w, d = config.widths, config.depths
    x = unit(g, x, 3, w[0], 3, 2)
    levels = []
    for k in range(4):
        x = csp(g, unit(g, x, w[k], w[k + 1], 3, 2), w[k + 1], w[k + 1], d[k])
        levels.append(x)
    return [*levels[1:3], pyramidPool(g, x, w[4])]


def neck(g, levels, w):
    """Down the pyramid by upsampling, and up again by strided convolutions."""
    small, middle, large = levels
    up = csp(g, g.op("Concat", upsample(g, large), middle, axis=1), w[4] + w[3], w[3], 1, False)
    a = csp(g, g.op("Concat", upsample(g, up), small, axis=1), w[3] + w[2], w[2], 1, False)
    b = csp(g, g.op("Concat", unit(g, a, w[2], w[2], 3, 2), up, axis=1), w[2] + w[3], w[3], 1, False)
    c = csp(g, g.op("Concat", unit(g, b, w[3], w[3], 3, 2), large, axis=1), w[3] + w[4], w[4], 1, False)
    return [a, b, c]


def anchors(image):
    """Centres [1, 2, N] and strides [1, N] of all cells."""
    centres, strides = [], []
    for stride in STRIDES:
        cells = np.arange(image // stride) + 0.5
        y, x = np.meshgrid(cells, cells, indexing="ij")
        centres.append(np.stack([x.ravel(), y.ravel()]))
        strides.append(np.full(x.size, stride))
    return np.concatenate(centres, 1)[None].astype(np.float32), np.concatenate(strides)[None].astype(np.float32)


def head(g, levels, config):
    outputs, rows = 4 * BINS + config.classes, []
    batch = g.dim("image", 0)
    for x, channels in zip(levels, config.widths[2:]):
        hidden, scores = max(16, channels // 4, 4 * BINS), max(config.widths[2], min(config.classes, 100))
        box = unit(g, unit(g, x, channels, hidden, 3), hidden, hidden, 3)
        kind = unit(g, unit(g, x, channels, scores, 3), scores, scores, 3)
        both = [layers.conv(g, box, hidden, 4 * BINS), layers.conv(g, kind, scores, config.classes)]
        rows.append(g.reshape(g.op("Concat", *both, axis=1), [batch, outputs, -1]))
    joined = g.op("Concat", *rows, axis=2)
    box, kind = g.slice(joined, 1, 0, 4 * BINS), g.slice(joined, 1, 4 * BINS, outputs)
    return decode(g, box, batch, config.image), g.op("Sigmoid", kind)


def decode(g, box, batch, image):
    """[B, 4*16, N] -> [B, 4, N]: centre and size in pixels."""
    sides = g.op("Transpose", g.reshape(box, [batch, 4, BINS, -1]), perm=[0, 2, 1, 3])
    bins = g.initializer(np.arange(BINS, dtype=np.float32).reshape(1, BINS, 1, 1))
    sides = g.op("Conv", g.op("Softmax", sides, axis=1), bins, kernel_shape=[1, 1])
    near, far = g.split(g.reshape(sides, [batch, 4, -1]), 2, axis=1)
    centres, strides = anchors(image)
    low, high = g.op("Sub", g.constant(centres, np.float32), near), g.op("Add", g.constant(centres, np.float32), far)
    middle = g.op("Div", g.op("Add", low, high), g.number(2))
    return g.op("Mul", g.op("Concat", middle, g.op("Sub", high, low), axis=1), g.constant(strides, np.float32))


def build(g, config):
    x = g.input("image", ["batch", 3, config.image, config.image])
    box, kind = head(g, neck(g, backbone(g, x, config), config.widths), config)
    cells = sum((config.image // stride) ** 2 for stride in STRIDES)
    g.output("detections", g.op("Concat", box, kind, axis=1), ["batch", 4 + config.classes, cells])
