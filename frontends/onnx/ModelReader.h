// An ONNX file, opened: its structure parsed, its large tensors left where they are (Skeleton.h).
#pragma once
#include "frontends/onnx/TensorReader.h"
#include <onnx-ml.pb.h>

namespace dspark::onnx {

/// The newest versions of the format that this reader knows; newer files are refused.
inline constexpr int64_t kNewestIr = 14;
inline constexpr int64_t kNewestOpset = 28; // of ai.onnx

struct Model {
  ::onnx::ModelProto proto;
  std::shared_ptr<const MappedFile> file;
  std::unique_ptr<TensorReader> tensors;
};

/// Parses the file and checks what can be checked without knowing any operator: versions, opset imports, that
/// functions do not call themselves. Errors name the file.
StatusOr<Model> readModel(const std::string &path);

} // namespace dspark::onnx
