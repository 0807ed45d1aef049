"""A network as an exporter takes it: how to build it, and inputs of two sizes."""

import dataclasses
from collections.abc import Callable

import torch


@dataclasses.dataclass(frozen=True)
class Source:
    name: str
    build: Callable[[], torch.nn.Module]
    inputs: Callable[..., dict[str, torch.Tensor]]  # by name, in the order of forward's arguments; called with a size
    outputs: tuple[str, ...]
    axes: dict[str, dict[int, str]]  # symbolic dims of the inputs
    sizes: tuple[dict[str, int], ...]  # arguments of `inputs`; the first is what exporters trace with
    exporters: tuple[str, ...] = ("dynamo", "torchscript")
    lacks: dict[str, str] = dataclasses.field(default_factory=dict)  # exporter: why it does not write this network

    def module(self):
        torch.manual_seed(len(self.name))
        return self.build().eval()

    def feeds(self, size):
        torch.manual_seed(sum(size.values()))
        return self.inputs(**size)


def settle(module, *batch):
    """Statistics of batch normalisation as after training: those of a batch of noise. Without them the activations of a deep
    network of random weights vanish or grow."""
    for layer in module.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.momentum = None  # the mean over what was seen
    with torch.no_grad():
        module.train()(*batch)
    return module
