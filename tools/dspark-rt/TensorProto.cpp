#include "tools/dspark-rt/TensorProto.h"
#include "kernels/common/shape.h"
#include "runtime/base/MappedFile.h"
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
enum Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

class Reader {
public:
  explicit Reader(std::span<const std::byte> bytes) : rest(bytes) {}
  bool atEnd() const { return rest.empty(); }
  bool varint(uint64_t &value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest.empty(); shift += 7) {
      auto byte = uint64_t(rest[0]);
      rest = rest.subspan(1);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80)
        return true;
    }
    return false;
  }
  bool take(uint64_t count, std::span<const std::byte> &bytes) {
    if (count > rest.size())
      return false;
    bytes = rest.first(count);
    rest = rest.subspan(count);
    return true;
  }

private:
  std::span<const std::byte> rest;
};

struct Content {
  std::vector<int64_t> dims;
  int32_t type = 0;
  std::string name;
  std::span<const std::byte> raw;
  std::vector<std::byte> values; // float_data and such, each element at its full width
  std::vector<int64_t> int32s;
  bool hasStrings = false, isExternal = false;
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
    content.name.assign(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    return true;
  case kRaw:
    content.raw = bytes;
    return true;
  case kFloats:
  case kDoubles:
    content.values.insert(content.values.end(), bytes.begin(), bytes.end());
    return true;
  case kStrings:
    content.hasStrings = true;
    return true;
  case kExternal:
    content.isExternal = true;
    return true;
  case kDims:
  case kInt32s:
  case kInt64s:
  case kUint64s:
    for (Reader packed(bytes); !packed.atEnd();) {
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
  for (Reader reader(file); !reader.atEnd();) {
    uint64_t tag, value;
    std::span<const std::byte> bytes;
    if (!reader.varint(tag))
      return false;
    switch (tag & 7) {
    case kVarint:
      if (!reader.varint(value))
        return false;
      takeVarint(content, tag >> 3, value);
      break;
    case kBytes:
      if (!reader.varint(value) || !reader.take(value, bytes) || !takeBytes(content, tag >> 3, bytes))
        return false;
      break;
    case kFixed32:
    case kFixed64:
      if (!reader.take((tag & 7) == kFixed32 ? 4 : 8, bytes))
        return false;
      if (tag >> 3 == kFloats || tag >> 3 == kDoubles)
        content.values.insert(content.values.end(), bytes.begin(), bytes.end());
      break;
    default:
      return false;
    }
  }
  return true;
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

StatusOr<HostTensor> readTensorProto(const std::string &path) {
  DSPARK_ASSIGN_OR_RETURN(auto file, MappedFile::open(path));
  Content content;
  if (!parse(file->bytes(), content))
    return invalidArgument(path + ": not a TensorProto");
  if (content.hasStrings || content.type == int(DType::String))
    return Status(Code::Unsupported, path + ": strings are not supported");
  if (content.isExternal)
    return Status(Code::Unsupported, path + ": external data is not supported here");
  if (content.type <= 0 || content.type >= kDTypeCount || content.dims.size() > kMaxRank)
    return invalidArgument(path + ": element type " + std::to_string(content.type) + " and rank " +
                           std::to_string(content.dims.size()) + ", expected a type below " +
                           std::to_string(kDTypeCount) + " and a rank up to " + std::to_string(kMaxRank));
  HostTensor tensor{content.name, DType(content.type), content.dims, {}};
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
