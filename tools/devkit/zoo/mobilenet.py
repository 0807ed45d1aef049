"""MobileNetV2 (Sandler et al. 2018) and MobileNetV3-Large (Howard et al. 2019): inverted residuals."""

import dataclasses

from . import layers


@dataclasses.dataclass(frozen=True)
class Row:
    """One inverted residual: `hidden` channels inside."""
    kernel: int
    hidden: int
    outputs: int
    squeeze: bool
    hard: bool  # hard swish instead of relu
    stride: int


@dataclasses.dataclass(frozen=True)
class Config:
    rows: tuple
    first: int
    last: int
    image: int = 224
    head: int = 0  # V3's hidden layer of the classifier
    classes: int = 1000


def v2Rows(table):
    """From (expansion, outputs, repeats, stride), the paper's table 2."""
    rows, inputs = [], table[0][1] * 2
    for expansion, outputs, repeats, stride in table:
        for k in range(repeats):
            rows.append(Row(3, inputs * expansion, outputs, False, False, stride if k == 0 else 1))
            inputs = outputs
    return tuple(rows)


V2_FULL = Config(v2Rows([(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]),
                 first=32, last=1280)
V2_SMALL = Config(v2Rows([(1, 4, 1, 1), (3, 6, 2, 2), (3, 8, 2, 2)]), first=8, last=24, image=48, classes=10)

V3_ROWS = [(3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2), (5, 120, 40, 1, 0, 1),
           (5, 120, 40, 1, 0, 1), (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1),
           (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1), (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1)]
V3_FULL = Config(tuple(Row(*row) for row in V3_ROWS), first=16, last=960, head=1280)
V3_SMALL = Config(tuple(Row(*row) for row in [(3, 8, 8, 0, 0, 1), (5, 16, 12, 1, 0, 2), (5, 24, 12, 1, 1, 1)]), first=8, last=24, head=32,
                  image=48, classes=10)


def activation(isHard, isV3):
    if isHard:
        return layers.hardSwish
    return layers.relu if isV3 else layers.relu6


def residual(g, x, inputs, row, isV3):
    act, y = activation(row.hard, isV3), x
    if row.hidden != inputs:
        y = act(g, layers.convNorm(g, y, inputs, row.hidden, gain=layers.RELU_GAIN))
    y = act(g, layers.convNorm(g, y, row.hidden, row.hidden, row.kernel, row.stride, row.hidden, gain=layers.RELU_GAIN))
    if row.squeeze:
        y = layers.squeezeExcite(g, y, row.hidden, max(8, row.hidden // 4 // 8 * 8), layers.relu, layers.hardSigmoid)
    y = layers.convNorm(g, y, row.hidden, row.outputs)
    return g.op("Add", x, y) if row.stride == 1 and inputs == row.outputs else y


def build(g, config):
    isV3 = config.head > 0
    x = g.input("image", ["batch", 3, config.image, config.image])
    x = activation(isV3, isV3)(g, layers.convNorm(g, x, 3, config.first, 3, 2, gain=layers.RELU_GAIN))
    channels = config.first
    for row in config.rows:
        x, channels = residual(g, x, channels, row, isV3), row.outputs
    x = activation(isV3, isV3)(g, layers.convNorm(g, x, channels, config.last, gain=layers.RELU_GAIN))
    x = layers.globalPool(g, x)
    if not isV3:
        logits = layers.classifier(g, x, config.last, config.classes)
    else:
        hidden = layers.hardSwish(g, layers.classifier(g, x, config.last, config.head))
        logits = layers.gemm(g, hidden, config.head, config.classes)
    g.output("logits", logits, ["batch", config.classes])
