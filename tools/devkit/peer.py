"""How onnxruntime fares on ONNX's backend cases, by the same tolerances as tools/onnx-conformance.

A case is passed, refused (the model does not load), failed (an error at run time, or a wrong answer), crashed, or unasked (its
operands have a type that onnxruntime's Python cannot be given or give back). It runs in other processes, which answer one line per
case; one that dies was at the case after its last line."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from devkit import venv

if __name__ == "__main__":
    venv.enter()
import numpy as np
import onnx
from onnx import numpy_helper

BATCH = 100  # cases per process
LIMIT = 300  # seconds for one
KINDS = {"sequence_type": (onnx.SequenceProto, numpy_helper.to_list), "optional_type": (onnx.OptionalProto, numpy_helper.to_optional)}
ODD = ("bfloat16", "float8", "float4", "int4", "int2", "uint4", "uint2")


class Unasked(Exception):
    pass


def read(path, info):
    kind = info.type.WhichOneof("value")
    message, convert = KINDS.get(kind, (onnx.TensorProto, numpy_helper.to_array))
    value = message()
    value.ParseFromString(path.read_bytes())
    value = convert(value)
    if isinstance(value, np.ndarray) and value.dtype.name.startswith(ODD):
        raise Unasked(value.dtype.name)
    return value


def differs(got, want, rtol, atol):
    if isinstance(want, list):
        return not isinstance(got, list) or len(got) != len(want) or any(differs(g, w, rtol, atol) for g, w in zip(got, want))
    if want is None or got is None:
        return want is not got
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return True
    if want.dtype.kind in "OUS":
        return got.astype(str).tolist() != want.astype(str).tolist()
    if got.dtype != want.dtype:
        return True
    return not np.allclose(got, want, rtol=max(rtol, 2**-9 if want.dtype == np.float16 else 0), atol=atol, equal_nan=True)


def ask(folder, isRandom, atol):
    import onnxruntime

    graph, data = onnx.load(folder / "model.onnx").graph, folder / "test_data_set_0"
    try:
        feeds = {info.name: read(data / f"input_{k}.pb", info) for k, info in enumerate(graph.input)}
        wanted = [read(data / f"output_{k}.pb", info) for k, info in enumerate(graph.output)]
    except Unasked as kind:
        return "unasked", str(kind)
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    try:
        session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return "refused", str(error)
    try:
        results = session.run(None, feeds)
    except Exception as error:
        return "failed", str(error)
    if isRandom:
        return ("passed", "") if all(np.shape(g) == np.shape(w) for g, w in zip(results, wanted)) else ("failed", "shapes differ")
    bad = [info.name for info, got, want in zip(graph.output, results, wanted) if differs(got, want, 1e-3, atol)]
    return ("failed", f"{bad[0]} differs") if bad else ("passed", "")


def outcomes(folders, random, absolute):
    """{name: (status, reason)}; `random` are the names of cases with random outputs, `absolute` wider tolerances by name."""
    answers, left = {}, list(folders)
    while left:
        batch = left[:BATCH]
        arguments = [f"{folder}\t{int(folder.name in random)}\t{absolute.get(folder.name, 1e-7)}" for folder in batch]
        try:
            done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, timeout=LIMIT, errors="replace")
            text = done.stdout
        except subprocess.TimeoutExpired as late:
            text = (late.stdout or b"").decode(errors="replace")
        lines = [line.split("\t") for line in text.splitlines() if line.count("\t") == 2]
        answers |= {name: (status, reason) for name, status, reason in lines}
        left = [folder for folder in left if folder.name not in answers]
        if left and left[0] in batch:  # died at this one
            answers[left[0].name] = ("crashed", "")
            left = left[1:]
    return answers


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        place, isRandom, atol = argument.split("\t")
        status, reason = ask(pathlib.Path(place), isRandom == "1", float(atol))
        print(f"{pathlib.Path(place).name}\t{status}\t{' '.join(reason.split())[-160:]}", flush=True)
