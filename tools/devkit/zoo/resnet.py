"""ResNet with bottleneck blocks (He et al. 2015; torchvision's v1.5: the stride is on the 3x3 convolution)."""

import dataclasses

from . import layers


@dataclasses.dataclass(frozen=True)
class Config:
    image: int = 224
    width: int = 64
    blocks: tuple = (3, 4, 6, 3)
    classes: int = 1000


FULL, SMALL = Config(), Config(image=64, width=8, blocks=(1, 2, 1, 1), classes=10)


def bottleneck(g, x, inputs, width, stride):
    outputs = 4 * width
    y = layers.relu(g, layers.convNorm(g, x, inputs, width, gain=layers.RELU_GAIN))
    y = layers.relu(g, layers.convNorm(g, y, width, width, 3, stride, gain=layers.RELU_GAIN))
    y = layers.convNorm(g, y, width, outputs, gain=0.5)
    if stride != 1 or inputs != outputs:
        x = layers.convNorm(g, x, inputs, outputs, stride=stride)
    return layers.relu(g, g.op("Add", y, x)), outputs


def build(g, config):
    x = g.input("image", ["batch", 3, config.image, config.image])
    x = layers.relu(g, layers.convNorm(g, x, 3, config.width, 7, 2, gain=layers.RELU_GAIN))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = config.width
    for stage, count in enumerate(config.blocks):
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            x, channels = bottleneck(g, x, channels, config.width << stage, stride)
    logits = layers.classifier(g, g.op("GlobalAveragePool", x), channels, config.classes)
    g.output("logits", logits, ["batch", config.classes])
