// Conversions between f32/f64 and the narrow number formats, with the rounding and saturation that ONNX's
// Cast and QuantizeLinear define: to nearest, ties to even. Everything is inline with internal linkage, so
// that files compiled for a higher ISA level can include it.
#pragma once
#include "kernels/common/dtype.h"
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace dspark {
// Always inlined: no copy compiled for one ISA level can be linked into code for another.
#define DSPARK_INLINE inline __attribute__((always_inline))

DSPARK_INLINE float bf16ToF32(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

DSPARK_INLINE uint16_t f32ToBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) // NaN: keep it quiet, and a NaN after truncation
    return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

DSPARK_INLINE float f16ToF32(uint16_t half) {
  // The exponent is rebased by a multiplication, which also normalises subnormals.
  float magnitude = std::bit_cast<float>(uint32_t(half & 0x7fff) << 13) * 0x1p112f;
  if ((half & 0x7c00) == 0x7c00)
    magnitude = std::bit_cast<float>(uint32_t(half & 0x3ff) << 13 | 0x7f800000);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | uint32_t(half & 0x8000) << 16);
}

DSPARK_INLINE uint16_t f32ToF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  bits &= 0x7fffffff;
  if (bits > 0x7f800000)
    return uint16_t(sign | 0x7e00 | (bits >> 13 & 0x3ff));
  if (bits >= 0x477ff000) // rounds to 65536 or more
    return uint16_t(sign | 0x7c00);
  if (bits < 0x38800000) // below 2^-14: adding 0.5 makes the FPU round to the subnormal's quantum, 2^-24
    return uint16_t(sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + 0.5f) - 0x3f000000));
  uint32_t odd = bits >> 13 & 1;
  return uint16_t(sign | ((bits - 0x38000000 + 0xfff + odd) >> 13));
}

#undef DSPARK_INLINE

namespace {

/// A binary floating-point format of at most 16 bits.
struct SmallFloat {
  int exponentBits, mantissaBits, bias;
  bool hasInf;
  bool signedZero; // false: the code of -0 is the only NaN ("fnuz")
  uint16_t nan;    // 0: there is none
  uint16_t largest;
};

constexpr SmallFloat smallFloat(DType type) {
  switch (type) {
  case DType::F16:
    return {5, 10, 15, true, true, 0x7e00, 0x7bff};
  case DType::BF16:
    return {8, 7, 127, true, true, 0x7fc0, 0x7f7f};
  case DType::F8E4M3FN:
    return {4, 3, 7, false, true, 0x7f, 0x7e};
  case DType::F8E4M3FNUZ:
    return {4, 3, 8, false, false, 0x80, 0x7f};
  case DType::F8E5M2:
    return {5, 2, 15, true, true, 0x7e, 0x7b};
  case DType::F8E5M2FNUZ:
    return {5, 2, 16, false, false, 0x80, 0x7f};
  case DType::F4E2M1:
    return {2, 1, 1, false, true, 0, 0x7};
  default:
    return {};
  }
}

constexpr double powerOfTwo(int exponent) {
  double value = 1;
  for (; exponent > 0; --exponent)
    value *= 2;
  for (; exponent < 0; ++exponent)
    value /= 2;
  return value;
}

/// The value of one code of a SmallFloat format.
constexpr double decodeSmall(SmallFloat f, uint32_t bits) {
  uint32_t signBit = 1u << (f.exponentBits + f.mantissaBits);
  uint32_t magnitude = bits & (signBit - 1);
  uint32_t mantissa = magnitude & ((1u << f.mantissaBits) - 1), exponent = magnitude >> f.mantissaBits;
  uint32_t top = (1u << f.exponentBits) - 1;
  bool isNan = f.hasInf ? exponent == top && mantissa != 0
                        : f.nan != 0 && (f.signedZero ? magnitude == f.nan : bits == f.nan);
  if (isNan)
    return __builtin_nan("");
  double sign = bits & signBit ? -1 : 1;
  if (f.hasInf && exponent == top)
    return sign * __builtin_inf();
  if (exponent == 0)
    return sign * mantissa * powerOfTwo(1 - f.bias - f.mantissaBits);
  return sign * (mantissa + (1u << f.mantissaBits)) * powerOfTwo(int(exponent) - f.bias - f.mantissaBits);
}

/// The nearest code. What overflows becomes the largest number if `saturate`, else infinity or NaN; f4 always
/// saturates, and turns NaN into a zero.
inline uint32_t encodeSmall(SmallFloat f, double value, bool saturate) {
  uint32_t signBit = 1u << (f.exponentBits + f.mantissaBits);
  uint32_t sign = std::signbit(value) ? signBit : 0;
  if (std::isnan(value)) {
    if (f.nan == 0)
      return sign ^ signBit;
    return f.signedZero ? f.nan | sign : f.nan;
  }
  double magnitude = std::fabs(value), largest = decodeSmall(f, f.largest);
  int minExponent = 1 - f.bias;
  if (magnitude != 0 && !std::isinf(magnitude)) {
    int exponent = std::ilogb(magnitude);
    double quantum = std::ldexp(1.0, (exponent < minExponent ? minExponent : exponent) - f.mantissaBits);
    magnitude = std::nearbyint(magnitude / quantum) * quantum;
  }
  if (magnitude > largest) {
    if (saturate || f.nan == 0)
      return f.largest | sign;
    if (f.hasInf)
      return (((1u << f.exponentBits) - 1) << f.mantissaBits) | sign;
    return f.signedZero ? f.nan | sign : f.nan;
  }
  if (magnitude == 0)
    return f.signedZero ? sign : 0;
  int exponent = std::ilogb(magnitude);
  if (exponent < minExponent)
    return uint32_t(std::ldexp(magnitude, f.mantissaBits - minExponent)) | sign;
  uint32_t mantissa = uint32_t(std::ldexp(magnitude, f.mantissaBits - exponent)) - (1u << f.mantissaBits);
  return uint32_t(exponent + f.bias) << f.mantissaBits | mantissa | sign;
}

/// f8e8m0 holds powers of two only, 2^(code - 127); 255 is NaN.
enum class E8m0Round : uint8_t { Up, Down, Nearest };

inline double decodeE8m0(uint8_t code) {
  return code == 255 ? __builtin_nan("") : std::ldexp(1.0, code - 127);
}

inline uint8_t encodeE8m0(double value, E8m0Round round, bool saturate) {
  double magnitude = std::fabs(value);
  if (std::isnan(value))
    return 255;
  if (magnitude < 0x1p-127)
    return saturate ? 0 : 255;
  if (std::isinf(magnitude))
    return saturate ? 254 : 255;
  int exponent = std::ilogb(magnitude);
  double fraction = magnitude / std::ldexp(1.0, exponent);
  exponent += round == E8m0Round::Up ? fraction > 1 : round == E8m0Round::Nearest ? fraction >= 1.5 : 0;
  if (exponent > 127)
    return saturate ? 254 : 255;
  return uint8_t(exponent + 127);
}

/// Conversion of a floating-point number to an integer, defined for every input: truncation; what a 32-bit
/// (for T of up to 32 bits) or 64-bit result cannot hold gives the smallest one, as the machine's instruction
/// does, and narrower types keep its low bits.
template <typename T> inline T truncateTo(double value) {
  if constexpr (sizeof(T) == 8 && T(-1) > T(0))
    return value >= 0x1p63 && value < 0x1p64
               ? T(value)
               : T(value >= -0x1p63 && value < 0x1p63 ? int64_t(value) : INT64_MIN);
  else if constexpr (sizeof(T) == 8 || (sizeof(T) == 4 && T(-1) > T(0)))
    return T(value >= -0x1p63 && value < 0x1p63 ? int64_t(value) : INT64_MIN);
  else
    return T(value > -2147483649.0 && value < 2147483648.0 ? int32_t(value) : INT32_MIN);
}

/// Elements of 2- and 4-bit types: the first in the lowest bits of its byte.
inline uint32_t loadPacked(const void *data, int64_t i, int bits) {
  int perByte = 8 / bits;
  return static_cast<const uint8_t *>(data)[i / perByte] >> (i % perByte * bits) & ((1u << bits) - 1);
}
inline int32_t signExtend(uint32_t value, int bits) { return int32_t(value << (32 - bits)) >> (32 - bits); }

} // namespace

/// Reads elements [begin, begin + n) as doubles: exact for every type but 64-bit integers and complex numbers
/// (which are not supported).
void loadAsF64(DType type, const void *data, int64_t begin, int64_t n, double *out);

struct NarrowOptions {
  bool saturate = true; // 8-bit floats only
  E8m0Round round = E8m0Round::Up;
};
/// Writes elements [begin, begin + n), rounding floats to nearest and truncating to integers (truncateTo).
/// For packed types `begin` is a multiple of 8; unused bits of the last byte become 0.
void storeFromF64(DType type, void *data, int64_t begin, int64_t n, const double *in,
                  const NarrowOptions &options = {});

} // namespace dspark
