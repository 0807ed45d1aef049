"""A multilayer perceptron with one hidden layer: where the cost of a run is the cost of starting it."""

import dataclasses

from . import layers


@dataclasses.dataclass(frozen=True)
class Config:
    inputs: int = 256
    hidden: int = 128
    classes: int = 10


FULL, SMALL = Config(), Config(inputs=20, hidden=17, classes=3)


def build(g, config):
    x = g.input("x", ["batch", config.inputs])
    x = layers.relu(g, layers.gemm(g, x, config.inputs, config.hidden, layers.RELU_GAIN))
    g.output("logits", layers.gemm(g, x, config.hidden, config.classes), ["batch", config.classes])
