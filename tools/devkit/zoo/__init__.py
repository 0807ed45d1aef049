"""Well-known architectures with seeded random weights: nothing to download, the same bytes on every machine.

Each module is one family with a `build(graph, config)`, and two sizes: FULL, for measuring, and SMALL, for tests. Weights
are scaled so that activations neither vanish nor grow, as in a trained model.
"""

import dataclasses
import functools
import hashlib
import pathlib
import types

import numpy as np
from onnx import TensorProto

from . import bert, efficientnet, gpt2, mobilenet, perceptron, resnet, swin, vit, whisper, yolo
from .graph import STYLES, Graph

SIZES = ("full", "small")


@dataclasses.dataclass(frozen=True)
class Architecture:
    name: str
    family: types.ModuleType
    full: object
    small: object
    dims: dict = dataclasses.field(default_factory=dict)  # the symbolic dims besides the batch, by size

    def graph(self, size="full", style="modern"):
        graph = Graph(self.name, style, seed=len(self.name))
        self.family.build(graph, getattr(self, size))
        return graph

    def file(self, size, style, folder):
        """The model in `folder`, written there unless this version of it is."""
        path = folder / f"{self.name}-{size}-{style}-{version()}.onnx"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(".part")
            part.write_bytes(self.graph(size, style).model().SerializeToString())
            part.rename(path)
        return path

    def feeds(self, graph, size="full", batch=1, seed=0):
        """Arrays for the graph's inputs: normal numbers, integers below each input's limit, masks with a padded end."""
        random, dims = np.random.default_rng(seed), {"batch": batch, **self.dims.get(size, {})}
        result = {}
        for value in graph.inputs:
            shape = [dims[dim.dim_param] if dim.dim_param else dim.dim_value for dim in value.type.tensor_type.shape.dim]
            if value.name == "attention_mask":
                result[value.name] = np.ones(shape, np.int64)
                result[value.name][1:, -shape[1] // 4 :] = 0
            elif value.type.tensor_type.elem_type == TensorProto.INT64:
                result[value.name] = random.integers(0, graph.limits[value.name], shape)
            else:
                result[value.name] = random.standard_normal(shape, np.float32)
        return result


@functools.cache
def version():
    """Changes with the sources of the models."""
    sources = sorted(pathlib.Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:10]


TOKENS = {"full": {"tokens": 128}, "small": {"tokens": 11}}

ARCHITECTURES = [
    Architecture("resnet50", resnet, resnet.FULL, resnet.SMALL),
    Architecture("mobilenet-v2", mobilenet, mobilenet.V2_FULL, mobilenet.V2_SMALL),
    Architecture("mobilenet-v3", mobilenet, mobilenet.V3_FULL, mobilenet.V3_SMALL),
    Architecture("efficientnet-b0", efficientnet, efficientnet.FULL, efficientnet.SMALL),
    Architecture("yolo", yolo, yolo.FULL, yolo.SMALL),
    Architecture("vit-b16", vit, vit.FULL, vit.SMALL),
    Architecture("swin-t", swin, swin.FULL, swin.SMALL),
    Architecture("bert-base", bert, bert.FULL, bert.SMALL, TOKENS),
    Architecture("minilm-l6", bert, bert.MINILM, bert.SMALL, TOKENS),
    Architecture("gpt2", gpt2, gpt2.FULL, gpt2.SMALL, TOKENS),
    Architecture("whisper-tiny-encoder", whisper, whisper.FULL, whisper.SMALL),
    Architecture("mlp", perceptron, perceptron.FULL, perceptron.SMALL),
]


def byName(name):
    for architecture in ARCHITECTURES:
        if architecture.name == name:
            return architecture
    raise KeyError(f"no architecture named {name}; known: {', '.join(a.name for a in ARCHITECTURES)}")
