// TensorProto -> type, dims and bytes. The bytes stay in their file where they lie there as the runtime wants
// them (raw, little-endian, dense), and are built in memory otherwise.
#pragma once
#include "frontends/onnx/ExternalData.h"

namespace onnx {
class SparseTensorProto;
class TensorProto;
} // namespace onnx

namespace dspark::onnx {

/// A dense form of more bytes is not made from a sparse tensor.
inline constexpr int64_t kMaxSparseBytes = int64_t(64) << 20;

class TensorReader {
public:
  /// `model` is the file that payloads (Skeleton.h) point into; its path may be empty for tests from memory.
  TensorReader(std::shared_ptr<const MappedFile> model, std::string modelPath)
      : model(std::move(model)), external(std::move(modelPath)) {}

  /// Errors name the tensor, what is wrong, and the values found.
  StatusOr<Weight> read(const ::onnx::TensorProto &tensor);
  StatusOr<Weight> read(const ::onnx::SparseTensorProto &tensor);

private:
  Status readBytes(const ::onnx::TensorProto &tensor, uint64_t bytes, Weight &weight);
  std::shared_ptr<const MappedFile> model;
  ExternalFiles external;
};

/// Product of `dims`, or -1 where one is negative or the product (or the bytes of it) overflows int64.
int64_t elementCount(std::span<const int64_t> dims, DType type);

/// Strings as the plan file holds constants of them: offset and length of each, then their characters.
std::vector<std::byte> stringBytes(const std::vector<std::string> &strings);

/// The bytes that TensorReader found.
std::span<const std::byte> bytesOf(const Weight &weight);

} // namespace dspark::onnx
