#include "runtime/executor/Contents.h"
#include "kernels/common/numeric.h"
#include <bit>
#include <cstring>

namespace dspark {
namespace {

// Calls fn(T()) with the C++ type of an integer or bool.
template <typename Fn> bool withInteger(DType type, Fn fn) {
  switch (type) {
  case DType::U8:
  case DType::Bool:
    return fn(uint8_t()), true;
  case DType::I8:
    return fn(int8_t()), true;
  case DType::U16:
    return fn(uint16_t()), true;
  case DType::I16:
    return fn(int16_t()), true;
  case DType::I32:
    return fn(int32_t()), true;
  case DType::I64:
    return fn(int64_t()), true;
  case DType::U32:
    return fn(uint32_t()), true;
  case DType::U64:
    return fn(uint64_t()), true;
  default:
    return false;
  }
}

template <typename T> T load(const void *data, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte *>(data) + size_t(i) * sizeof(T), sizeof(T));
  return value;
}

double loadFloat(DType type, const void *data, int64_t i) {
  switch (type) {
  case DType::F32:
    return load<float>(data, i);
  case DType::F64:
    return load<double>(data, i);
  case DType::F16:
    return f16ToF32(load<uint16_t>(data, i));
  default:
    return bf16ToF32(load<uint16_t>(data, i));
  }
}

bool isReadableFloat(DType type) {
  return type == DType::F32 || type == DType::F64 || type == DType::F16 || type == DType::BF16;
}

} // namespace

bool hasReadableContents(DType type) {
  return isReadableFloat(type) || withInteger(type, [](auto) {});
}

void appendContents(DType type, const void *data, int64_t count, std::vector<int64_t> &key) {
  if (isReadableFloat(type))
    for (int64_t i = 0; i < count; ++i)
      key.push_back(std::bit_cast<int64_t>(loadFloat(type, data, i)));
  else
    withInteger(type, [&](auto zero) {
      for (int64_t i = 0; i < count; ++i)
        key.push_back(int64_t(load<decltype(zero)>(data, i)));
    });
}

void setContents(TensorInfo &info, const std::vector<int64_t> &key) {
  info.hasContents = true;
  info.ints.clear();
  info.floats.clear();
  for (int64_t value : key)
    if (isFloat(info.type))
      info.floats.push_back(std::bit_cast<double>(value));
    else
      info.ints.push_back(Dim(value));
}

void readContents(TensorInfo &info, const void *data) {
  std::vector<int64_t> key;
  appendContents(info.type, data, elementCount(info.dims), key);
  setContents(info, key);
}

bool isKnownInteger(const TensorInfo &info) {
  if (!info.hasContents || !withInteger(info.type, [](auto) {}))
    return false;
  if (int64_t(info.ints.size()) != elementCount(info.dims))
    return false;
  for (Dim dim : info.ints)
    if (!dim.isConst())
      return false;
  return true;
}

std::vector<std::byte> contentBytes(const TensorInfo &info) {
  std::vector<std::byte> bytes(size_t(dtypeBytes(info.type, int64_t(info.ints.size()))));
  withInteger(info.type, [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < info.ints.size(); ++i) {
      T value = T(info.ints[i].value());
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  return bytes;
}

std::vector<int64_t> numbers(const std::vector<Dim> &dims) {
  std::vector<int64_t> result;
  for (Dim dim : dims)
    result.push_back(dim.value());
  return result;
}

int64_t elementCount(const std::vector<Dim> &dims) {
  int64_t count = 1;
  bool isEmpty = false, overflows = false;
  for (Dim dim : dims) {
    if (!dim.isConst() || dim.value() < 0)
      return -1;
    isEmpty |= dim.value() == 0;
    overflows |= __builtin_mul_overflow(count, std::max<int64_t>(dim.value(), 1), &count);
  }
  return overflows ? -1 : isEmpty ? 0 : count;
}

} // namespace dspark
