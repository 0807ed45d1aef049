// The skeleton of an ONNX file: the same protobuf message without the bytes of its large tensors.
//
// Protobuf would copy every weight into its own strings, so a model of a gigabyte would take two. Instead one
// bounds-checked walk over the wire format copies everything but
//   raw_data, packed float_data and packed double_data of kMinPayload bytes or more, for which it leaves
//   (offset, length) into the file in a field of its own, and
//   doc strings and metadata, which carry stack traces and nothing that matters here.
// Nothing of the file but its structure is trusted: nesting, lengths and wire types are checked.
#pragma once
#include "runtime/base/Status.h"
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace onnx {
class TensorProto;
}

namespace dspark::onnx {

inline constexpr size_t kMinPayload = 1024;
/// Of one skeleton. 100,000 nodes take about 20 MB.
inline constexpr size_t kMaxSkeleton = size_t(1) << 30;
/// Of messages within messages; a nested If takes 3 levels.
inline constexpr int kMaxNesting = 192;

/// Bytes in the file that a TensorProto of the skeleton stands for.
struct Payload {
  enum class Field : uint32_t { Raw = 9, Floats = 4, Doubles = 10 };
  Field field;
  uint64_t offset, length;
};

/// The serialised skeleton of the ModelProto (or, with `asTensor`, of the TensorProto) in `file`.
StatusOr<std::string> makeSkeleton(std::span<const std::byte> file, bool asTensor = false);

/// The payload that the walk left in a TensorProto, if any.
std::optional<Payload> payloadOf(const ::onnx::TensorProto &tensor);

} // namespace dspark::onnx
