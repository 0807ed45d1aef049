// Values that are 8-bit integers with one scale and zero point, and the numbers behind these.
#pragma once
#include "dialects/DSpark/OpFactory.h"
#include <optional>

namespace dspark {

/// (q - zero) * scale with q of 8 bits, scale one f32 and zero one element of q's type.
struct QuantizedValue {
  mlir::Value q, scale, zero; // zero is null where the model has none

  /// If `value` is a dequantize_linear of that kind.
  static std::optional<QuantizedValue> of(mlir::Value value);
  /// If `op` quantises to that kind; q is its result.
  static std::optional<QuantizedValue> madeBy(mlir::Operation *op);

  DType type() const;
  /// The zero point as an operand; makes a constant where there is none.
  mlir::Value zeroOperand(mlir::Location loc, ir::OpFactory &factory) const;
  /// Scale and zero point are constants that are known to be the same.
  bool hasSameParameters(const QuantizedValue &other) const;
  std::optional<float> scaleNumber() const;
  std::optional<int> zeroNumber() const;
};

/// Whether every element of op's result is one of its operand 0, whatever the type: reshape, transpose,
/// slice, gather, max pooling, nearest resizing and the like.
bool movesFirstOperand(mlir::Operation *op);

/// The sole element of a small constant.
std::optional<float> constantFloat(mlir::Value value);
std::optional<int64_t> constantInt(mlir::Value value);
/// The number all elements of `value` are: an f32 constant, or one that is dequantised.
std::optional<float> splatNumber(mlir::Value value);

/// What relu and clip by numbers do.
struct Bounds {
  double low, high;

  /// If `op` bounds `value`.
  static std::optional<Bounds> of(mlir::Operation *op, mlir::Value value);
  bool isRelu() const;
};

} // namespace dspark
