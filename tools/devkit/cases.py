"""ONNX backend node cases as folders: <case>/model.onnx with test_data_set_N/{input,output}_K.pb."""

import pathlib
import shutil
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

from .venv import CACHE

FOLDER = CACHE / "onnx-cases"


def toProto(value, info):
    """The protobuf message of a value whose declared type is info.type, as onnx's own backend-test-tools writes it."""
    if isinstance(value, onnx.TensorProto):
        return value
    convert = {"map_type": numpy_helper.from_dict, "sequence_type": numpy_helper.from_list,
               "optional_type": numpy_helper.from_optional, "tensor_type": numpy_helper.from_array}
    return convert[info.type.WhichOneof("value")](value, info.name)


def writeCase(case, folder):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    inputs, outputs = case.data_sets[0]
    for stem, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
        for k, (value, info) in enumerate(zip(values, infos)):
            (data / f"{stem}_{k}.pb").write_bytes(toProto(value, info).SerializeToString())


def generate():
    """Writes the cases of the installed onnx package into .cache/onnx-cases, once per version; returns the folder."""
    stamp = FOLDER / ".version"
    if stamp.exists() and stamp.read_text() == onnx.__version__:
        return FOLDER
    shutil.rmtree(FOLDER, ignore_errors=True)
    from onnx.backend.test.case.node import collect_testcases

    print(f"writing the node cases of onnx {onnx.__version__} into {FOLDER}", flush=True)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for case in collect_testcases(None):
            writeCase(case, FOLDER / case.name)
    stamp.write_text(onnx.__version__)
    return FOLDER


def find(folder):
    """The case folders under `folder`, at any depth, by name."""
    return sorted(path.parent for path in pathlib.Path(folder).rglob("model.onnx"))
