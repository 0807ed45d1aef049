// Tensor data that lies in other files, beside the model. A model may come from anyone, so what it names is
// resolved against its own folder and may not leave it: no absolute path, no "..", no symbolic link that
// points outside, nothing but regular files.
#pragma once
#include "dialects/DSpark/WeightStore.h"
#include "runtime/base/Status.h"
#include <map>

namespace onnx {
class TensorProto;
}

namespace dspark::onnx {

struct ExternalRange {
  std::shared_ptr<const MappedFile> file;
  uint64_t offset = 0, length = 0;
};

class ExternalFiles {
public:
  /// `modelPath` may be empty for models that come from memory: then there is no folder, and external data is
  /// refused.
  explicit ExternalFiles(std::string modelPath) : modelPath(std::move(modelPath)) {}

  /// The range that `tensor`'s external_data names; its length is `bytes`. Keys other than location, offset
  /// and length are ignored, as the format asks. Errors do not name the tensor; the caller does.
  StatusOr<ExternalRange> resolve(const ::onnx::TensorProto &tensor, uint64_t bytes);

private:
  StatusOr<std::shared_ptr<const MappedFile>> open(const std::string &location);
  std::string modelPath;
  std::map<std::string, std::shared_ptr<const MappedFile>> files; // by location
};

} // namespace dspark::onnx
