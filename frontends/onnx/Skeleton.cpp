#include "frontends/onnx/Skeleton.h"
#include <google/protobuf/io/coded_stream.h>
#include <onnx-ml.pb.h>

namespace dspark::onnx {

namespace {

enum class Kind : uint8_t {
  Model,
  Graph,
  Node,
  Attribute,
  Tensor,
  SparseTensor,
  Function,
  ValueInfo,
  Opaque,
  Skip
};

/// What field `number` of a message of kind `in` holds, as far as the walk cares.
Kind childKind(Kind in, uint32_t number) {
  switch (in) {
  case Kind::Model:
    return number == 7                                   ? Kind::Graph
           : number == 25                                ? Kind::Function
           : number == 6 || number == 14 || number == 20 ? Kind::Skip
                                                         : Kind::Opaque;
  case Kind::Graph:
    return number == 1                                    ? Kind::Node
           : number == 5                                  ? Kind::Tensor
           : number == 15                                 ? Kind::SparseTensor
           : number == 11 || number == 12 || number == 13 ? Kind::ValueInfo
           : number == 10 || number == 14 || number == 16 ? Kind::Skip
                                                          : Kind::Opaque;
  case Kind::Node:
    return number == 5                                  ? Kind::Attribute
           : number == 6 || number == 9 || number == 10 ? Kind::Skip
                                                        : Kind::Opaque;
  case Kind::Attribute:
    return number == 5 || number == 10    ? Kind::Tensor
           : number == 6 || number == 11  ? Kind::Graph
           : number == 22 || number == 23 ? Kind::SparseTensor
           : number == 13                 ? Kind::Skip
                                          : Kind::Opaque;
  case Kind::SparseTensor:
    return number == 1 || number == 2 ? Kind::Tensor : Kind::Opaque;
  case Kind::Function:
    return number == 7                   ? Kind::Node
           : number == 11                ? Kind::Attribute
           : number == 12                ? Kind::ValueInfo
           : number == 8 || number == 14 ? Kind::Skip
                                         : Kind::Opaque;
  case Kind::Tensor:
    return number == 12 || number == 16 ? Kind::Skip : Kind::Opaque;
  case Kind::ValueInfo:
    return number == 3 || number == 4 ? Kind::Skip : Kind::Opaque;
  default:
    return Kind::Opaque;
  }
}

/// The field that stands for a payload: the largest number protobuf allows, which no schema uses. Such fields
/// in the file itself are dropped, so a file cannot forge one. Its value is 3 varints: field, offset, length.
constexpr uint32_t kPayloadField = 536870911;

enum Wire : uint32_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

void appendVarint(std::string &out, uint64_t value) {
  for (; value > 127; value >>= 7)
    out.push_back(char(value | 128));
  out.push_back(char(value));
}

class Walker {
public:
  explicit Walker(std::span<const std::byte> file) : file(file) {}

  Status walk(size_t begin, size_t end, Kind kind, int depth);
  std::string out;

private:
  Status fail(size_t at, const std::string &what) const {
    return corruptFile("not an ONNX file: " + what + " at byte " + std::to_string(at));
  }
  /// Advances `at`; false where the number does not end before `end` or does not fit 64 bits.
  bool readVarint(size_t &at, size_t end, uint64_t &value) const {
    value = 0;
    for (int shift = 0; shift < 70 && at < end; shift += 7) {
      auto byte = uint8_t(file[at++]);
      if (shift == 63 && byte > 1)
        return false;
      value |= uint64_t(byte & 127) << shift;
      if (!(byte & 128))
        return true;
    }
    return false;
  }
  void copy(size_t begin, size_t end) {
    out.append(reinterpret_cast<const char *>(file.data()) + begin, end - begin);
  }
  Status walkChild(size_t tag, size_t begin, size_t end, Kind kind, int depth);
  void putPayload(Payload payload);

  std::span<const std::byte> file;
};

void Walker::putPayload(Payload payload) {
  std::string body;
  appendVarint(body, uint64_t(payload.field));
  appendVarint(body, payload.offset);
  appendVarint(body, payload.length);
  appendVarint(out, uint64_t(kPayloadField) << 3 | Wire::Bytes);
  appendVarint(out, body.size());
  out += body;
}

/// A message inside a message. Its new length is not known before the walk, so five bytes are kept for it (a
/// varint may be padded) and filled in afterwards.
Status Walker::walkChild(size_t tag, size_t begin, size_t end, Kind kind, int depth) {
  appendVarint(out, tag);
  size_t hole = out.size();
  out.append(5, '\0');
  DSPARK_RETURN_IF_ERROR(walk(begin, end, kind, depth + 1));
  uint64_t length = out.size() - hole - 5;
  for (int i = 0; i < 5; ++i, length >>= 7)
    out[hole + i] = char((length & 127) | (i < 4 ? 128 : 0));
  return Status::ok();
}

Status Walker::walk(size_t at, size_t end, Kind kind, int depth) {
  if (depth > kMaxNesting)
    return fail(at, "messages nested more than " + std::to_string(kMaxNesting) + " deep");
  bool hasData = false;
  while (at < end) {
    if (out.size() > kMaxSkeleton)
      return fail(at, "more than 1 GiB of structure");
    size_t start = at;
    uint64_t tag, length = 0;
    if (!readVarint(at, end, tag) || tag >> 3 == 0 || tag >> 32)
      return fail(start, "bad field tag");
    auto number = uint32_t(tag >> 3);
    switch (tag & 7) {
    case Wire::Varint:
      if (!readVarint(at, end, length))
        return fail(start, "bad number");
      break;
    case Wire::Fixed64:
    case Wire::Fixed32:
      length = (tag & 7) == Wire::Fixed64 ? 8 : 4;
      if (length > end - at)
        return fail(start, "truncated field " + std::to_string(number));
      at += length;
      break;
    case Wire::Bytes: {
      if (!readVarint(at, end, length) || length > end - at)
        return fail(start, "field " + std::to_string(number) + " of " + std::to_string(length) +
                               " bytes reaches past the end of its message or of the file");
      size_t body = at;
      at += length;
      Kind child = childKind(kind, number);
      if (child == Kind::Skip || number == kPayloadField)
        continue;
      if (child != Kind::Opaque) {
        DSPARK_RETURN_IF_ERROR(walkChild(tag, body, at, child, depth));
        continue;
      }
      if (kind == Kind::Tensor && (number == 9 || number == 4 || number == 10)) {
        // Concatenating the pieces of a packed list would need a copy; no writer splits one.
        if (hasData)
          return fail(start, "a tensor whose data comes twice");
        hasData = true;
        if (length >= kMinPayload) {
          putPayload({Payload::Field(number), body, length});
          continue;
        }
      }
      break;
    }
    default:
      return fail(start, "wire type " + std::to_string(tag & 7));
    }
    if (number != kPayloadField)
      copy(start, at);
  }
  return Status::ok();
}

} // namespace

StatusOr<std::string> makeSkeleton(std::span<const std::byte> file, bool asTensor) {
  Walker walker(file);
  DSPARK_RETURN_IF_ERROR(walker.walk(0, file.size(), asTensor ? Kind::Tensor : Kind::Model, 0));
  return std::move(walker.out);
}

std::optional<Payload> payloadOf(const ::onnx::TensorProto &tensor) {
  // The schema is built for protobuf's lite runtime, which keeps unknown fields as one serialised string.
  const std::string &unknown = tensor.unknown_fields();
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t *>(unknown.data()),
                                                int(unknown.size()));
  while (uint32_t tag = stream.ReadTag()) {
    uint64_t number = 0, field = 0, offset = 0, length = 0;
    uint32_t size = 0;
    bool ok = true;
    switch (tag & 7) {
    case Wire::Varint:
      ok = stream.ReadVarint64(&number);
      break;
    case Wire::Fixed64:
    case Wire::Fixed32:
      ok = stream.Skip((tag & 7) == Wire::Fixed64 ? 8 : 4);
      break;
    default:
      ok = stream.ReadVarint32(&size);
      if (ok && tag >> 3 == kPayloadField && stream.ReadVarint64(&field) && stream.ReadVarint64(&offset) &&
          stream.ReadVarint64(&length))
        return Payload{Payload::Field(field), offset, length};
      ok = ok && stream.Skip(int(size));
    }
    if (!ok)
      break;
  }
  return std::nullopt;
}

} // namespace dspark::onnx
