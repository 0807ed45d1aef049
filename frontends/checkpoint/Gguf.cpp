#include "frontends/checkpoint/Gguf.h"
#include <bit>
#include <cstring>
#include <limits>

namespace dspark::checkpoint {
namespace {

constexpr uint32_t kMagic = 0x46554747; // "GGUF"
constexpr uint32_t kMostDims = 8;

uint32_t scalarBytes(GgufKind kind) {
  constexpr uint32_t bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return bytes[uint32_t(kind)];
}

template <typename T> T load(std::span<const std::byte> bytes, size_t at = 0) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

std::string quoted(std::string_view name) { return "\"" + std::string(name.substr(0, 80)) + "\""; }

// The file from front to back. A take that goes past the end fails and says where.
class Cursor {
public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes(bytes) {}

  size_t position() const { return at; }
  size_t left() const { return bytes.size() - at; }

  template <typename T> Status take(T &value) {
    std::span<const std::byte> raw;
    DSPARK_RETURN_IF_ERROR(take(sizeof value, raw));
    value = load<T>(raw);
    return Status::ok();
  }

  Status take(uint64_t size, std::span<const std::byte> &raw) {
    if (size > left())
      return corruptFile("the file ends at byte " + std::to_string(bytes.size()) + ", but " +
                         std::to_string(size) + " bytes are to follow byte " + std::to_string(at));
    raw = bytes.subspan(at, size);
    at += size;
    return Status::ok();
  }

  Status takeString(std::span<const std::byte> &raw) {
    uint64_t size = 0;
    DSPARK_RETURN_IF_ERROR(take(size));
    return take(size, raw);
  }

  Status takeValue(GgufValue &value) {
    DSPARK_RETURN_IF_ERROR(takeKind(value.kind));
    if (value.kind == GgufKind::String)
      return takeString(value.bytes);
    if (value.kind != GgufKind::Array)
      return take(scalarBytes(value.kind), value.bytes);
    DSPARK_RETURN_IF_ERROR(takeKind(value.element));
    DSPARK_RETURN_IF_ERROR(take(value.count));
    if (value.element == GgufKind::Array)
      return corruptFile("it is an array of arrays, which no published file has");
    if (value.element != GgufKind::String) {
      if (value.count > left() / scalarBytes(value.element))
        return corruptFile("an array has " + std::to_string(value.count) + " elements, the file only " +
                           std::to_string(left()) + " more bytes");
      return take(value.count * scalarBytes(value.element), value.bytes);
    }
    const size_t begin = at;
    for (uint64_t i = 0; i < value.count; ++i) {
      std::span<const std::byte> element;
      DSPARK_RETURN_IF_ERROR(takeString(element));
    }
    value.bytes = bytes.subspan(begin, at - begin);
    return Status::ok();
  }

private:
  Status takeKind(GgufKind &kind) {
    uint32_t number = 0;
    DSPARK_RETURN_IF_ERROR(take(number));
    if (number > uint32_t(GgufKind::F64))
      return corruptFile("a value has type " + std::to_string(number) + ", the last known one is 12");
    kind = GgufKind(number);
    return Status::ok();
  }

  std::span<const std::byte> bytes;
  size_t at = 0;
};

// Elements and bytes of a tensor; an error where a product overflows or a row is no whole number of blocks.
StatusOr<uint64_t> tensorBytes(const GgufTensor &tensor) {
  uint64_t elements = 1;
  for (int64_t dim : tensor.dims)
    if (dim < 1 || __builtin_mul_overflow(elements, uint64_t(dim), &elements) ||
        elements > uint64_t(INT64_MAX))
      return corruptFile("its dims hold " + std::to_string(dim) + ", or more elements than 2^63");
  const int64_t row = tensor.dims.empty() ? 1 : tensor.dims.back();
  if (row % int64_t(tensor.type.elements))
    return corruptFile("its rows have " + std::to_string(row) + " elements, blocks of " +
                       std::string(tensor.type.name) + " have " + std::to_string(tensor.type.elements));
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements / tensor.type.elements, uint64_t(tensor.type.bytes), &bytes))
    return corruptFile("it has more than 2^64 bytes");
  return bytes;
}

struct TensorPlace {
  GgufTensor tensor;
  uint64_t offset, size;
};

StatusOr<TensorPlace> takeTensor(Cursor &cursor) {
  TensorPlace place;
  std::span<const std::byte> name;
  DSPARK_RETURN_IF_ERROR(cursor.takeString(name));
  place.tensor.name = text(name);
  uint32_t rank = 0, type = 0;
  DSPARK_RETURN_IF_ERROR(cursor.take(rank));
  if (rank > kMostDims)
    return corruptFile("tensor " + quoted(place.tensor.name) + " has " + std::to_string(rank) +
                       " dims, at most " + std::to_string(kMostDims) + " are allowed");
  place.tensor.dims.resize(rank);
  for (uint32_t i = 0; i < rank; ++i)
    DSPARK_RETURN_IF_ERROR(cursor.take(place.tensor.dims[rank - 1 - i]));
  DSPARK_RETURN_IF_ERROR(cursor.take(type));
  DSPARK_RETURN_IF_ERROR(cursor.take(place.offset));
  const GgmlTypeInfo *info = ggmlTypeInfo(type);
  if (!info)
    return Status(Code::Unsupported, "tensor " + quoted(place.tensor.name) + " has element type " +
                                         std::to_string(type) + ", which is not known");
  place.tensor.type = *info;
  const StatusOr<uint64_t> size = tensorBytes(place.tensor);
  if (!size.isOk())
    return size.status().in("tensor " + quoted(place.tensor.name));
  place.size = *size;
  return place;
}

} // namespace

std::optional<int64_t> GgufValue::integer() const {
  switch (kind) {
  case GgufKind::U8:
    return load<uint8_t>(bytes);
  case GgufKind::I8:
    return load<int8_t>(bytes);
  case GgufKind::U16:
    return load<uint16_t>(bytes);
  case GgufKind::I16:
    return load<int16_t>(bytes);
  case GgufKind::U32:
    return load<uint32_t>(bytes);
  case GgufKind::I32:
    return load<int32_t>(bytes);
  case GgufKind::I64:
    return load<int64_t>(bytes);
  case GgufKind::U64:
    if (const uint64_t value = load<uint64_t>(bytes); value <= uint64_t(INT64_MAX))
      return int64_t(value);
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

std::optional<double> GgufValue::number() const {
  if (kind == GgufKind::F32)
    return load<float>(bytes);
  if (kind == GgufKind::F64)
    return load<double>(bytes);
  if (const std::optional<int64_t> value = integer())
    return double(*value);
  return std::nullopt;
}

std::optional<bool> GgufValue::boolean() const {
  return kind == GgufKind::Bool ? std::optional(load<uint8_t>(bytes) != 0) : std::nullopt;
}

std::optional<std::string_view> GgufValue::string() const {
  return kind == GgufKind::String ? std::optional(text(bytes)) : std::nullopt;
}

std::optional<std::vector<std::string_view>> GgufValue::strings() const {
  if (kind != GgufKind::Array || element != GgufKind::String)
    return std::nullopt;
  std::vector<std::string_view> result;
  for (size_t at = 0; at < bytes.size();) { // lengths were checked when the file was read
    const auto size = size_t(load<uint64_t>(bytes, at));
    result.push_back(text(bytes.subspan(at + 8, size)));
    at += 8 + size;
  }
  return result;
}

std::optional<std::vector<double>> GgufValue::numbers() const {
  if (kind != GgufKind::Array || element == GgufKind::String || element == GgufKind::Bool)
    return std::nullopt;
  std::vector<double> result;
  const size_t width = scalarBytes(element);
  for (size_t at = 0; at < bytes.size(); at += width) {
    const std::optional<double> value = GgufValue{element, bytes.subspan(at, width)}.number();
    result.push_back(value.value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  return result;
}

StatusOr<std::unique_ptr<GgufFile>> GgufFile::open(const std::string &path) {
  DSPARK_ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> file, MappedFile::open(path));
  StatusOr<std::unique_ptr<GgufFile>> result = read(file->bytes());
  if (!result.isOk())
    return result.status().in(path);
  (*result)->file = std::move(file);
  return result;
}

StatusOr<std::unique_ptr<GgufFile>> GgufFile::read(std::span<const std::byte> bytes) {
  std::unique_ptr<GgufFile> result(new GgufFile);
  DSPARK_RETURN_IF_ERROR(result->parse(bytes));
  return result;
}

const GgufValue *GgufFile::find(std::string_view key) const {
  const auto found = values.find(key);
  return found == values.end() ? nullptr : &found->second;
}

const GgufTensor *GgufFile::tensor(std::string_view name) const {
  const auto found = tensorIndex.find(name);
  return found == tensorIndex.end() ? nullptr : &tensorList[found->second];
}

Status GgufFile::parse(std::span<const std::byte> bytes) {
  Cursor cursor(bytes);
  uint32_t magic = 0;
  uint64_t tensorCount = 0, valueCount = 0;
  DSPARK_RETURN_IF_ERROR(cursor.take(magic));
  if (magic != kMagic)
    return corruptFile("this is no GGUF file: it does not start with \"GGUF\"");
  DSPARK_RETURN_IF_ERROR(cursor.take(formatVersion));
  if (formatVersion != 2 && formatVersion != 3)
    return {Code::Version,
            "the file has GGUF version " + std::to_string(formatVersion) + "; versions 2 and 3 are read"};
  DSPARK_RETURN_IF_ERROR(cursor.take(tensorCount));
  DSPARK_RETURN_IF_ERROR(cursor.take(valueCount));
  for (uint64_t i = 0; i < valueCount; ++i) {
    std::span<const std::byte> key;
    GgufValue value;
    DSPARK_RETURN_IF_ERROR(cursor.takeString(key));
    DSPARK_RETURN_IF_ERROR(cursor.takeValue(value).in("key " + quoted(text(key))));
    if (!values.try_emplace(text(key), value).second)
      return corruptFile("key " + quoted(text(key)) + " occurs twice");
  }
  std::vector<TensorPlace> places;
  for (uint64_t i = 0; i < tensorCount; ++i) {
    DSPARK_ASSIGN_OR_RETURN(TensorPlace place, takeTensor(cursor));
    if (!tensorIndex.try_emplace(place.tensor.name, places.size()).second)
      return corruptFile("tensor " + quoted(place.tensor.name) + " occurs twice");
    places.push_back(std::move(place));
  }
  uint64_t alignment = 32;
  if (const GgufValue *value = find("general.alignment")) {
    const std::optional<int64_t> given = value->integer();
    if (!given || *given < 1 || *given > 1 << 20 || !std::has_single_bit(uint64_t(*given)))
      return corruptFile("general.alignment must be a power of two up to 2^20");
    alignment = uint64_t(*given);
  }
  const uint64_t data = (cursor.position() + alignment - 1) / alignment * alignment;
  const uint64_t available = data < bytes.size() ? bytes.size() - data : 0;
  for (TensorPlace &place : places) {
    if (place.offset % alignment || place.offset > available || place.size > available - place.offset)
      return corruptFile("tensor " + quoted(place.tensor.name) + " has " + std::to_string(place.size) +
                         " bytes at offset " + std::to_string(place.offset) + " of the data, which has " +
                         std::to_string(available) + " bytes and an alignment of " +
                         std::to_string(alignment));
    place.tensor.bytes = bytes.subspan(data + place.offset, place.size);
    tensorList.push_back(std::move(place.tensor));
  }
  return Status::ok();
}

} // namespace dspark::checkpoint
