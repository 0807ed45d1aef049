"""com.microsoft's DynamicQuantizeLSTM as LSTM on dequantised weights: without the roundings to 8 bits inside it, which no graph can
show, two right engines agree."""

import numpy as np
import onnx
from onnx import numpy_helper

# Of DynamicQuantizeLSTM: X W R B sequence_lens initial_h initial_c P, then scale and zero point of W and of R.
SCALES = {1: (8, 9), 2: (10, 11)}


def dequantised(weights, scale, zero):
    """[directions, inputs, 4 * hidden] in bytes -> LSTM's [directions, 4 * hidden, inputs]; scales are per direction, or per
    direction and column."""
    scale, zero = (np.reshape(value, (weights.shape[0], 1, -1)) for value in (scale, zero))
    return np.ascontiguousarray(((weights.astype(np.float32) - zero.astype(np.float32)) * scale).transpose(0, 2, 1))


def rewrite(path, to):
    """Writes the model at `path` in that form to `to`; returns how many nodes were rewritten."""
    model = onnx.load(path)
    constants = {weight.name: weight for weight in model.graph.initializer}
    found = [node for node in model.graph.node if node.op_type == "DynamicQuantizeLSTM"]
    for node in found:
        for at, places in SCALES.items():
            values = [numpy_helper.to_array(constants[node.input[k]]) for k in (at, *places)]
            name = f"{node.input[at]}.float"
            model.graph.initializer.append(numpy_helper.from_array(dequantised(*values).astype(np.float32), name))
            node.input[at] = name
        del node.input[8:]
        node.op_type, node.domain = "LSTM", ""
    onnx.save(model, to)
    return len(found)
