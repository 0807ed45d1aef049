"""What exporters write: well-known networks with seeded random weights through torch.onnx.export (dynamo and TorchScript),
onnxruntime.quantization, optimum-onnx and onnxruntime-genai's model builder.

Runs under the Python of tools/requirements-exports.txt; tools/exports starts it, a process per model."""
