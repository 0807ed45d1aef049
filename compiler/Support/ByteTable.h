// Functions of one 8-bit value as tables of 256 entries: what a chain of elementwise operations between a
// dequantize_linear and a quantize_linear computes.
#pragma once
#include "compiler/Support/QuantizedValue.h"
#include <vector>

namespace dspark {

struct ByteTable {
  QuantizedValue x;
  /// Entry i belongs to the i-th value of x's type, from its lowest on.
  std::vector<float> values;

  /// The f32 value as a function of the only tensor it depends on. Operations within are computed in f64 and
  /// rounded to f32 one by one, as kernels do but for the last bits of transcendental functions.
  static std::optional<ByteTable> of(mlir::Value value);
  /// The bytes that quantising by `result` makes of the values; nullopt unless its parameters are constants.
  std::optional<std::vector<std::byte>> quantized(const QuantizedValue &result) const;
  /// Whether each value of x maps to itself.
  static bool isIdentity(const std::vector<std::byte> &bytes, DType from, DType to);
};

} // namespace dspark
