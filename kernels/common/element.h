// Element types as C++ types, for kernels that are written once as templates: the 16-bit floats as storage
// types that convert to and from float, dispatch from a DType to a template, and saturating conversion.
#pragma once
#include "kernels/common/numeric.h"
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace dspark {

/// IEEE binary16; conversion from float rounds to nearest even.
struct F16 {
  uint16_t bits = 0;
  F16() = default;
  F16(float value) : bits(f32ToF16(value)) {}
  operator float() const { return f16ToF32(bits); }
};

/// The upper half of a float; conversion from float rounds to nearest even.
struct BF16 {
  uint16_t bits = 0;
  BF16() = default;
  BF16(float value) : bits(f32ToBf16(value)) {}
  operator float() const { return bf16ToF32(bits); }
};

/// What sums of T are computed in: double for double, else float.
template <typename T> using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Calls f.operator()<T>() for f32, f64, f16 and bf16; false for any other type.
template <typename F> bool dispatchFloat(DType type, F &&f) {
  switch (type) {
  case DType::F32:
    f.template operator()<float>();
    return true;
  case DType::F64:
    f.template operator()<double>();
    return true;
  case DType::F16:
    f.template operator()<F16>();
    return true;
  case DType::BF16:
    f.template operator()<BF16>();
    return true;
  default:
    return false;
  }
}

/// The same for these and the integers of 8 to 64 bits; bool counts as u8.
template <typename F> bool dispatchNumber(DType type, F &&f) {
  switch (type) {
  case DType::Bool:
  case DType::U8:
    f.template operator()<uint8_t>();
    return true;
  case DType::I8:
    f.template operator()<int8_t>();
    return true;
  case DType::U16:
    f.template operator()<uint16_t>();
    return true;
  case DType::I16:
    f.template operator()<int16_t>();
    return true;
  case DType::U32:
    f.template operator()<uint32_t>();
    return true;
  case DType::I32:
    f.template operator()<int32_t>();
    return true;
  case DType::U64:
    f.template operator()<uint64_t>();
    return true;
  case DType::I64:
    f.template operator()<int64_t>();
    return true;
  default:
    return dispatchFloat(type, f);
  }
}

/// True for the types dispatchFloat / dispatchNumber take.
inline bool isPlainFloat(DType type) {
  return type == DType::F32 || type == DType::F64 || type == DType::F16 || type == DType::BF16;
}
inline bool isPlainNumber(DType type) {
  return isPlainFloat(type) || type == DType::Bool || (isInteger(type) && dtypeBits(type) >= 8);
}

/// `value` as an integer T, rounded by the caller; values beyond T's range end at its limits, NaN at 0.
template <typename T> T saturate(double value) {
  constexpr double kLow = double(std::numeric_limits<T>::min()),
                   kHigh = double(std::numeric_limits<T>::max());
  if (!(value == value))
    return 0;
  return value <= kLow    ? std::numeric_limits<T>::min()
         : value >= kHigh ? std::numeric_limits<T>::max()
                          : T(value);
}

/// A computed value as an element: floats round once, integers round to nearest even and saturate.
template <typename T> T fromReal(double value) {
  if constexpr (std::is_integral_v<T>)
    return saturate<T>(std::nearbyint(value));
  else if constexpr (std::is_same_v<T, double>)
    return value;
  else
    return T(float(value));
}

} // namespace dspark
