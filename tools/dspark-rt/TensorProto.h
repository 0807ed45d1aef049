// ONNX's TensorProto files and those of sequences, optionals and maps (input_K.pb, output_K.pb of backend
// test cases), read off the wire format.
#pragma once
#include "runtime/base/Status.h"
#include "runtime/format/plan_generated.h"
#include "tools/dspark-rt/HostTensor.h"
#include <span>

namespace dspark {

/// Errors: InvalidArgument for bytes that are no tensor; Unsupported for external data. `path` is for
/// messages.
StatusOr<HostTensor> parseTensorProto(std::span<const std::byte> message, const std::string &path);

/// A file that holds a value of that type (null: a tensor). Errors: also NotFound, IoError.
StatusOr<HostValue> readValueProto(const std::string &path, const fb::ValueType *type);
/// The name in a file of any value, "" if there is none.
StatusOr<std::string> readProtoName(const std::string &path);

} // namespace dspark
