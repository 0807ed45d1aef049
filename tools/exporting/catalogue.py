"""Every model that tools/exports writes, in order: a quantised one comes after the one it is made from."""

import dataclasses
import pathlib
import shutil
import tempfile
from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir  # noqa: F401  (onnxruntime's MatMulNBits quantiser needs it; a missing one should show at once)
from onnxruntime.quantization import matmul_nbits_quantizer

from devkit import quantized_models

from . import language_builders, recurrent, text, torch_export, vision

SOURCES = {source.name: source for source in [*vision.SOURCES, *text.SOURCES, *recurrent.SOURCES]}
# Each network in four forms of onnxruntime.quantization, from the exporter named.
QUANTISED = {"resnet50": "dynamo", "mobilenet-v3": "torchscript", "vit-b16": "torchscript", "bert": "dynamo", "gpt2": "torchscript",
             "t5-encoder": "torchscript"}
# Of T5 the products alone: what the quantiser makes of its relative positions, which are computed in f32, are no indices.
QUANTISED_TYPES = {"t5-encoder": ["MatMul"]}
FORMS = {"dynamic": "dynamic", "qdq": "qdq-u8-channel", "qoperator": "qoperator-u8"}


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    network: str
    exporter: str
    kind: str  # of arithmetic: f32, dynamic, static or int4; how far from onnxruntime an answer may be depends on it
    write: Callable[[pathlib.Path], list[dict[str, np.ndarray]]]  # writes model.onnx into a folder, returns feeds


def arrays(tensors):
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def torchJob(source, exporter):
    def write(folder):
        torch_export.export(source, exporter, folder / "model.onnx")
        names = [value.name for value in onnx.load(folder / "model.onnx", load_external_data=False).graph.input]
        return [{name: feed for name, feed in arrays(source.feeds(size)).items() if name in names} for size in source.sizes]

    return Job(f"{source.name}-{exporter}", source.name, f"torch {exporter}", "f32", write)


def base(folder, network):
    """(model, feeds) that an earlier job wrote beside `folder`."""
    found = folder.parent / f"{network}-{QUANTISED[network]}"
    if not (found / "model.onnx").exists():
        raise RuntimeError(f"{found.name} is not there")
    return found / "model.onnx", [dict(np.load(case)) for case in sorted(found.glob("case-*.npz"))]


def withoutShapes(path):
    """The quantiser transposes weights and keeps what dynamo noted of their shapes, which it then finds contradictory."""
    model = onnx.load(path)
    del model.graph.value_info[:]
    return model


def quantisedJob(network, form):
    def write(folder):
        model, feeds = base(folder, network)
        with tempfile.TemporaryDirectory() as place:
            plain = pathlib.Path(place) / "model.onnx"
            onnx.save(withoutShapes(model), plain)
            quantized_models.quantize(plain, folder / "model.onnx", FORMS[form], feeds[:1], QUANTISED_TYPES.get(network))
        return feeds

    return Job(f"{network}-{form}", network, f"onnxruntime.quantization {FORMS[form]}", "dynamic" if form == "dynamic" else "static", write)


def blocksJob(network):
    def write(folder):
        model, feeds = base(folder, network)
        made = matmul_nbits_quantizer.MatMulNBitsQuantizer(onnx.load(model), block_size=32, is_symmetric=False)
        made.process()
        made.model.save_model_to_file(str(folder / "model.onnx"))
        return feeds

    return Job(f"{network}-int4", network, "MatMulNBits, 4 bits", "int4", write)


STEPS = (dict(batch=2, past=0, length=11), dict(batch=2, past=7, length=1))


def genaiJob(name, precision):
    def write(folder):
        language_builders.genai(language_builders.GENAI[name], precision, folder)
        # GroupQueryAttention leaves keys and values behind a sequence's end undefined, so no sequence ends before others.
        return [language_builders.feeds(folder / "model.onnx", **step, padding=0) for step in STEPS]

    return Job(f"{name}-genai-{precision}", name, f"onnxruntime-genai {precision}", "int4" if precision == "int4" else "f32", write)


def optimumJob(name, file, steps=STEPS):
    def write(folder):
        make, task = language_builders.OPTIMUM[name]
        language_builders.optimum(make, task, folder / "all")
        for part in (folder / "all").glob(f"{file}*"):
            shutil.move(part, folder / part.name.replace(file, "model.onnx"))
        shutil.rmtree(folder / "all")
        return [language_builders.feeds(folder / "model.onnx", **step) for step in steps]

    part = file.removesuffix(".onnx").removesuffix("_model").replace("_", "-").replace("model-", "")
    return Job(f"{name}-optimum" + (f"-{part}" if part != "model" else ""), name, "optimum-onnx", "f32", write)


def jobs():
    made = [torchJob(source, exporter) for source in SOURCES.values() for exporter in source.exporters]
    made += [quantisedJob(network, form) for network in QUANTISED for form in FORMS]
    made += [blocksJob(network) for network in QUANTISED if network not in ("resnet50", "mobilenet-v3")]
    made += [genaiJob(name, precision) for name in language_builders.GENAI for precision in ("fp32", "int4")]
    made += [optimumJob("gpt2", "model.onnx"), optimumJob("llama", "model.onnx"), optimumJob("t5", "encoder_model.onnx"),
             optimumJob("t5", "decoder_model_merged.onnx"), optimumJob("bert", "model.onnx")]
    return made
