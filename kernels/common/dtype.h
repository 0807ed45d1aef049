// Element types. The codes are ONNX's TensorProto.DataType numbers, so that models, plans and kernels share
// one list.
#pragma once
#include <cstdint>
#include <string_view>

namespace dspark {

enum class DType : uint8_t {
  Undefined = 0, // an absent optional operand
  F32 = 1,
  U8 = 2,
  I8 = 3,
  U16 = 4,
  I16 = 5,
  I32 = 6,
  I64 = 7,
  String = 8, // a view of characters (kernels/common/strings.h)
  Bool = 9,   // one byte, 0 or 1
  F16 = 10,
  F64 = 11,
  U32 = 12,
  U64 = 13,
  C64 = 14,  // two f32
  C128 = 15, // two f64
  BF16 = 16,
  F8E4M3FN = 17,
  F8E4M3FNUZ = 18,
  F8E5M2 = 19,
  F8E5M2FNUZ = 20,
  U4 = 21, // two per byte, the first in the low nibble; so are I4 and F4E2M1
  I4 = 22,
  F4E2M1 = 23,
  F8E8M0 = 24,
  U2 = 25, // four per byte, the first in the lowest bits; so is I2
  I2 = 26,
};
inline constexpr int kDTypeCount = 27;

/// Bits per element; 0 for Undefined.
int dtypeBits(DType type);
/// "f32", "i64", "bool" ...: the spelling used in messages, dumps and file names.
std::string_view dtypeName(DType type);
/// The type of that name, Undefined if there is none.
DType dtypeFromName(std::string_view name);

/// Bytes of a dense tensor of `elements` elements; sub-byte types are packed and rounded up.
inline int64_t dtypeBytes(DType type, int64_t elements) { return (elements * dtypeBits(type) + 7) / 8; }

bool isFloat(DType type);   // f64, f32, f16, bf16, the 8- and 4-bit floats
bool isInteger(DType type); // signed and unsigned integers of any width, not bool
bool isSigned(DType type);  // signed integers

} // namespace dspark
