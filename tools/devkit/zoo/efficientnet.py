"""EfficientNet-B0 (Tan and Le 2019): inverted residuals with squeeze and excitation, all with SiLU."""

import dataclasses

from . import layers


@dataclasses.dataclass(frozen=True)
class Config:
    table: tuple = ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4),
                    (6, 3, 1, 320, 1))  # expansion, kernel, stride, outputs, repeats
    first: int = 32
    last: int = 1280
    image: int = 224
    classes: int = 1000


FULL = Config()
SMALL = Config(table=((1, 3, 1, 8, 1), (4, 5, 2, 12, 2), (4, 3, 2, 16, 1)), first=8, last=32, image=48, classes=10)


def block(g, x, inputs, expansion, kernel, stride, outputs):
    hidden, y = inputs * expansion, x
    if expansion != 1:
        y = layers.silu(g, layers.convNorm(g, y, inputs, hidden, gain=layers.RELU_GAIN))
    y = layers.silu(g, layers.convNorm(g, y, hidden, hidden, kernel, stride, hidden, gain=layers.RELU_GAIN))
    y = layers.squeezeExcite(g, y, hidden, max(1, inputs // 4), layers.silu, lambda g, s: g.op("Sigmoid", s))
    y = layers.convNorm(g, y, hidden, outputs, gain=2.0)
    return g.op("Add", y, x) if stride == 1 and inputs == outputs else y


def build(g, config):
    x = g.input("image", ["batch", 3, config.image, config.image])
    x = layers.silu(g, layers.convNorm(g, x, 3, config.first, 3, 2, gain=layers.RELU_GAIN))
    channels = config.first
    for expansion, kernel, stride, outputs, repeats in config.table:
        for k in range(repeats):
            x = block(g, x, channels, expansion, kernel, stride if k == 0 else 1, outputs)
            channels = outputs
    x = layers.silu(g, layers.convNorm(g, x, channels, config.last, gain=layers.RELU_GAIN))
    logits = layers.classifier(g, layers.globalPool(g, x), config.last, config.classes)
    g.output("logits", logits, ["batch", config.classes])
