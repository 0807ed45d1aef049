// Protocol buffers off the wire (https://protobuf.dev/programming-guides/encoding/), as far as ONNX's values
// need them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dspark {

enum class Wire { Varint, Bytes, Fixed };

struct WireField {
  uint64_t number = 0;
  Wire wire = Wire::Varint;
  uint64_t value = 0;               // Varint
  std::span<const std::byte> bytes; // Bytes, Fixed (4 or 8)
};

class WireReader {
public:
  explicit WireReader(std::span<const std::byte> bytes) : rest(bytes) {}
  bool atEnd() const { return rest.empty(); }
  /// False at the end of the message, and where it is malformed.
  bool next(WireField &field) {
    uint64_t tag, length;
    if (rest.empty())
      return false;
    good = false;
    if (!varint(tag))
      return false;
    field.number = tag >> 3;
    switch (tag & 7) {
    case 0:
      field.wire = Wire::Varint;
      return good = varint(field.value);
    case 2:
      field.wire = Wire::Bytes;
      return good = varint(length) && take(length, field.bytes);
    case 1:
    case 5:
      field.wire = Wire::Fixed;
      return good = take((tag & 7) == 5 ? 4 : 8, field.bytes);
    default:
      return false;
    }
  }
  /// Whether everything so far was well formed.
  bool isGood() const { return good; }

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

private:
  bool take(uint64_t count, std::span<const std::byte> &bytes) {
    if (count > rest.size())
      return false;
    bytes = rest.first(count);
    rest = rest.subspan(count);
    return true;
  }
  std::span<const std::byte> rest;
  bool good = true;
};

inline std::string textOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

} // namespace dspark
