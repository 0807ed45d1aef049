"""A backend case in the three graph modes: as it is, with every dim of its inputs symbolic, and with its inputs turned into
constants, so that whatever the compiler folds is compared with what kernels give."""

import pathlib
import shutil

import onnx

MODES = ("static", "symbolic", "constant")


def symbolic(model):
    """Dims are named after input and axis: no two are known to be equal. What was declared of other values goes."""
    for index, info in enumerate(model.graph.input):
        if info.type.WhichOneof("value") == "tensor_type":
            for axis, dim in enumerate(info.type.tensor_type.shape.dim):
                dim.dim_param = f"d{index}_{axis}"
    forgetShapes(model)


def forgetShapes(model):
    del model.graph.value_info[:]
    for info in model.graph.output:
        if info.type.WhichOneof("value") == "tensor_type":
            info.type.tensor_type.ClearField("shape")


def inputFile(data, index, name):
    """input_K.pb of an input: by the name in the file, else by number."""
    for path in sorted(data.glob("input_*.pb")):
        tensor = onnx.TensorProto()
        try:
            tensor.ParseFromString(path.read_bytes())
        except Exception:  # a sequence or an optional; protobuf's own error types differ between its implementations
            continue
        if tensor.name == name:
            return path
    return data / f"input_{index}.pb"


def constant(model, data, to):
    """Tensors become initializers; sequences and optionals, which cannot, stay inputs, and `to` gets their files."""
    kept = []
    for index, info in enumerate(list(model.graph.input)):
        path = inputFile(data, index, info.name)
        if info.type.WhichOneof("value") == "tensor_type":
            tensor = model.graph.initializer.add()
            tensor.ParseFromString(path.read_bytes())
            tensor.name = info.name
        else:
            shutil.copyfile(path, to / f"input_{len(kept)}.pb")
            kept.append(info)
    del model.graph.input[:]
    model.graph.input.extend(kept)
    forgetShapes(model)
    for path in data.glob("output_*.pb"):
        shutil.copyfile(path, to / path.name)


def prepare(folder, mode, scratch):
    """[(model file, data folder)] of a case in a mode; what has to be written goes to `scratch`."""
    sets = sorted(folder.glob("test_data_set_*"))
    if mode == "static":
        return [(folder / "model.onnx", data) for data in sets]
    prepared = []
    for data in sets:
        model = onnx.load(folder / "model.onnx")
        to = scratch / f"{mode}-{data.name}"
        to.mkdir()
        if mode == "symbolic":
            symbolic(model)
        else:
            constant(model, data, to)
        path = to / "model.onnx"
        path.write_bytes(model.SerializeToString())
        prepared.append((path, data if mode == "symbolic" else to))
    return prepared
