"""torch.onnx.export in its two forms."""

import contextlib
import io
import warnings

import torch

# What each form writes by default would do; stated so that a new torch does not change the graphs.
OPSETS = {"dynamo": 20, "torchscript": 17}


def export(source, exporter, path):
    module, feeds = source.module(), source.feeds(source.sizes[0])
    shared = dict(input_names=list(feeds), output_names=list(source.outputs), opset_version=OPSETS[exporter], verbose=False)
    # Of attention's two implementations in torch, TorchScript has no symbol for the fused one.
    torch.backends.mha.set_fastpath_enabled(False)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad():
        warnings.simplefilter("ignore")
        if exporter == "dynamo":
            shapes = {name: {axis: torch.export.Dim.DYNAMIC for axis in source.axes.get(name, {})} for name in feeds}
            torch.onnx.export(module, tuple(feeds.values()), str(path), dynamo=True, dynamic_shapes=list(shapes.values()),
                              external_data=False, **shared)
        else:
            torch.onnx.export(module, tuple(feeds.values()), str(path), dynamo=False, dynamic_axes=source.axes, **shared)
