"""DSpark and its peers behind one interface, each peer at the settings that suit it best: all optimisations, the input's
dims made static (DSpark runs its one plan for every shape), spinning allowed, one stream.

An engine is opened on a Job and gives a function without arguments that runs once. The peers' modules are imported when
one is opened, so that a fresh process holds only what it measures."""

import dataclasses
import pathlib

import numpy as np
from devkit import capi


@dataclasses.dataclass(frozen=True)
class Job:
    """One model on one input."""
    name: str
    model: pathlib.Path
    plan: pathlib.Path
    feeds: dict
    threads: int
    dims: dict  # the model's dim symbols and the sizes that the input gives them


class DSpark:
    name = "dspark"

    def __init__(self, job):
        self.session, self.feeds = capi.Session(job.plan, job.threads), job.feeds
        self.call = self.session.caller(job.feeds)

    def answers(self):
        return self.session.run(self.feeds)

    def close(self):
        self.session.close()

    @staticmethod
    def settings():
        return "symbolic dims, defaults"


class OnnxRuntime:
    name = "onnxruntime"

    def __init__(self, job):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = job.threads, 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "1")
        for symbol, size in job.dims.items():
            options.add_free_dimension_override_by_name(symbol, size)
        self.session = onnxruntime.InferenceSession(str(job.model), options, providers=["CPUExecutionProvider"])
        self.names, self.feeds = [output.name for output in self.session.get_outputs()], job.feeds
        self.call = lambda: self.session.run(None, job.feeds)

    def answers(self):
        return dict(zip(self.names, self.session.run(self.names, self.feeds)))

    def close(self):
        del self.session

    @staticmethod
    def settings():
        return "ORT_ENABLE_ALL, sequential, spinning, dims overridden"


class OpenVino:
    """Held to f32, activations too: with weights in 8 bits it quantises them otherwise (the packaged MiniLM is 2.6 % off then).
    `openvino-default` leaves the precision to it, which is bf16 where the machine has such units."""

    name, precision = "openvino", {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}

    def __init__(self, job):
        import openvino

        core = openvino.Core()
        model = core.read_model(str(job.model))
        model.reshape({name: list(array.shape) for name, array in job.feeds.items()})
        config = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": job.threads, "ENABLE_CPU_PINNING": True}
        request = core.compile_model(model, "CPU", {**config, **self.precision}).create_infer_request()
        for name, array in job.feeds.items():
            array = np.ascontiguousarray(array) if array.ndim else array  # which would make a scalar a vector
            request.set_tensor(name, openvino.Tensor(array, shared_memory=True))
        self.request, self.call = request, request.infer
        self.names = [sorted(output.names)[0] for output in model.outputs]

    def answers(self):
        self.call()
        return {name: np.array(self.request.get_output_tensor(k).data) for k, name in enumerate(self.names)}

    def close(self):
        del self.request, self.call

    @classmethod
    def settings(cls):
        return f"LATENCY, one stream, pinned, static shapes, precision {cls.precision.get('INFERENCE_PRECISION_HINT', 'its own choice')}"


class OpenVinoDefault(OpenVino):
    name, precision = "openvino-default", {}


ENGINES = {engine.name: engine for engine in (DSpark, OnnxRuntime, OpenVino, OpenVinoDefault)}
OURS = DSpark.name


def symbols(model, feeds):
    """What Job.dims holds, read from the model; some models use one symbol for dims that differ, which says nothing."""
    import onnx

    sizes = {}
    for value in onnx.load(model, load_external_data=False).graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_param and value.name in feeds:
                sizes.setdefault(dim.dim_param, set()).add(feeds[value.name].shape[axis])
    return {symbol: found.pop() for symbol, found in sizes.items() if len(found) == 1}
