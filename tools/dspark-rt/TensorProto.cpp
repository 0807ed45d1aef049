#include "tools/dspark-rt/TensorProto.h"
#include "kernels/common/shape.h"
#include "tools/dspark-rt/WireReader.h"
#include <cstring>

namespace dspark {
namespace {

enum Field {
  kDims = 1,
  kDataType = 2,
  kFloats = 4,
  kInt32s = 5,
  kStrings = 6,
  kInt64s = 7,
  kName = 8,
  kRaw = 9,
  kDoubles = 10,
  kUint64s = 11,
  kExternal = 13
};
struct Content {
  std::vector<int64_t> dims;
  int32_t type = 0;
  std::string name;
  std::span<const std::byte> raw;
  std::vector<std::byte> values; // float_data and such, each element at its full width
  std::vector<int64_t> int32s;
  std::vector<std::string> strings;
  bool isExternal = false;
};

template <typename T> void appendValue(std::vector<std::byte> &out, T value) {
  auto bytes = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void takeVarint(Content &content, uint64_t field, uint64_t value) {
  if (field == kDims)
    content.dims.push_back(int64_t(value));
  else if (field == kDataType)
    content.type = int32_t(value);
  else if (field == kInt32s)
    content.int32s.push_back(int64_t(value));
  else if (field == kInt64s || field == kUint64s)
    appendValue(content.values, value);
}

bool takeBytes(Content &content, uint64_t field, std::span<const std::byte> bytes) {
  switch (field) {
  case kName:
    content.name = textOf(bytes);
    return true;
  case kRaw:
    content.raw = bytes;
    return true;
  case kFloats:
  case kDoubles:
    content.values.insert(content.values.end(), bytes.begin(), bytes.end());
    return true;
  case kStrings:
    content.strings.push_back(textOf(bytes));
    return true;
  case kExternal:
    content.isExternal = true;
    return true;
  case kDims:
  case kInt32s:
  case kInt64s:
  case kUint64s:
    for (WireReader packed(bytes); !packed.atEnd();) {
      uint64_t value;
      if (!packed.varint(value))
        return false;
      takeVarint(content, field, value);
    }
    return true;
  default:
    return true;
  }
}

bool parse(std::span<const std::byte> file, Content &content) {
  WireReader reader(file);
  for (WireField field; reader.next(field);)
    switch (field.wire) {
    case Wire::Varint:
      takeVarint(content, field.number, field.value);
      break;
    case Wire::Bytes:
      if (!takeBytes(content, field.number, field.bytes))
        return false;
      break;
    case Wire::Fixed:
      if (field.number == kFloats || field.number == kDoubles)
        content.values.insert(content.values.end(), field.bytes.begin(), field.bytes.end());
      break;
    }
  return reader.isGood();
}

// int32_data holds all types of up to 32 bits, the packed ones a byte per entry.
void appendInt32s(const Content &content, DType type, std::vector<std::byte> &out) {
  size_t width = size_t(std::max(1, dtypeBits(type) / 8));
  for (int64_t value : content.int32s) {
    auto bytes = std::as_bytes(std::span(&value, 1)).first(width);
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
}

} // namespace

StatusOr<HostTensor> parseTensorProto(std::span<const std::byte> message, const std::string &path) {
  Content content;
  if (!parse(message, content))
    return invalidArgument(path + ": not a TensorProto");
  if (content.isExternal)
    return Status(Code::Unsupported, path + ": external data is not supported here");
  if (content.type <= 0 || content.type >= kDTypeCount || content.dims.size() > kMaxRank)
    return invalidArgument(path + ": element type " + std::to_string(content.type) + " and rank " +
                           std::to_string(content.dims.size()) + ", expected a type below " +
                           std::to_string(kDTypeCount) + " and a rank up to " + std::to_string(kMaxRank));
  HostTensor tensor{std::move(content.name), DType(content.type), content.dims, {}};
  std::vector<std::byte> &bytes = tensor.bytes;
  if (!content.raw.empty())
    bytes.assign(content.raw.begin(), content.raw.end());
  else if (!content.int32s.empty())
    appendInt32s(content, tensor.type, bytes);
  else
    bytes = std::move(content.values);
  int64_t count = 1;
  bool isEmpty = false, overflows = false;
  for (int64_t dim : tensor.dims) {
    if (dim < 0)
      return invalidArgument(path + ": a dim is " + std::to_string(dim));
    isEmpty |= dim == 0;
    overflows |= __builtin_mul_overflow(count, dim, &count);
  }
  if (overflows && !isEmpty)
    return invalidArgument(path + ": its shape overflows");
  if (tensor.type == DType::String) {
    tensor.strings = std::move(content.strings);
    if (tensor.strings.size() != size_t(isEmpty ? 0 : count))
      return invalidArgument(path + ": " + std::to_string(tensor.strings.size()) + " strings for " +
                             tensor.str());
    return tensor;
  }
  size_t expected = isEmpty ? 0 : size_t(dtypeBytes(tensor.type, count));
  if (tensor.type == DType::U32 && content.raw.empty() && bytes.size() == 2 * expected) { // uint64_data
    for (size_t i = 0; i < expected; i += 4)
      std::memmove(bytes.data() + i, bytes.data() + 2 * i, 4);
    bytes.resize(expected);
  }
  if (bytes.size() != expected)
    return invalidArgument(path + ": " + std::to_string(bytes.size()) + " bytes of data, expected " +
                           std::to_string(expected) + " for " + tensor.str());
  return tensor;
}

} // namespace dspark
