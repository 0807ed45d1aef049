"""Public bug reports of other engines, as questions to this one: each case builds the reported kind of graph and states the right
answer, which follows from the operator's definition. The number behind a name is the report (ort = microsoft/onnxruntime,
tvm = apache/tvm, onnx = onnx/onnx, onnxsim = onnxsim/onnxsim, tract = sonos/tract, burn = tracel-ai/burn)."""

from . import attention, numbers, operators, shapes  # the cases enter themselves
from .cases import CASES
