// ONNX's TensorProto files (input_K.pb, output_K.pb of backend test cases), read off the wire format.
#pragma once
#include "runtime/base/Status.h"
#include "tools/dspark-rt/HostTensor.h"

namespace dspark {

/// Errors: NotFound, IoError; InvalidArgument for a file that is no tensor; Unsupported for strings.
StatusOr<HostTensor> readTensorProto(const std::string &path);

} // namespace dspark
