// What the integer contractions do with their sums: store them as they are (matmul_integer, conv_integer), or
// scale them to f32 or to 8 bits (qlinear_matmul, qlinear_conv with and without a scale of the result).
#pragma once
#include "kernels/common/kernel.h"
#include "kernels/matmul/epilogue.h"
#include "kernels/matmul/igemm.h"

namespace dspark {

/// Operand numbers; kNoOperand where an operator lacks one.
inline constexpr size_t kNoOperand = 99;
struct IntegerOperands {
  size_t a, aScale, aZero, b, bScale, bZero, yScale, yZero, bias, residual;
};
/// Of matmul_integer and conv_integer, of qlinear_matmul and qlinear_conv.
inline constexpr IntegerOperands kIntegerOperands = {0, kNoOperand, 2,          1,          kNoOperand,
                                                     3, kNoOperand, kNoOperand, kNoOperand, kNoOperand},
                                 kQlinearOperands = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

/// Entry i of a zero point or scale that holds one value for all, or one per row or column (and then repeats
/// from batch to batch); 0 and 1 where there is none.
int16_t zeroAt(const TensorView &zero, int64_t i);
float scaleAt(const TensorView &scale, int64_t i);
/// B's zero points in the packed panels' signed bytes.
class PanelZeros {
public:
  PanelZeros(const TensorView &b, const TensorView &zero);
  /// Those of `columns` columns from entry `parameter` on; false if all are 0.
  bool read(int64_t parameter, int64_t columns, int16_t (&out)[kIntegerColumns]) const;

private:
  const TensorView &zero;
  int16_t offset; // what packing takes off
  int16_t single; // where one serves all
  bool isSingle;
};

/// Takes zero[j] times a row's sum off column j of its sums, as a zero point of B asks for.
void takeOffZeros(int32_t *sums, int64_t rows, const int32_t *rowSums, const int16_t *zero);

/// How many rows of `depth` terms a tile should have at most.
int64_t integerTileRows(int64_t depth);

/// What 16 columns of sums are scaled by and shifted.
struct ResultColumns {
  int64_t count; // of them exist
  alignas(64) float bScale[kIntegerColumns], scale[kIntegerColumns], offset[kIntegerColumns];
  alignas(64) int32_t bias[kIntegerColumns];
};

/// Where rows of 16 columns of a result lie, `stride` elements apart, and what is added to them.
struct ResultPlace {
  std::byte *y;
  const float *residual; // or null
  int64_t stride;
};

/// Made by each tile, since scales may be results of other steps.
class IntegerResult {
public:
  IntegerResult(const KernelCall &call, const IntegerOperands &operands);

  int64_t elementBytes() const { return form == Form::Bytes ? 1 : 4; }
  /// `parameter` is the first column's entry in B's scales and the bias.
  void read(int64_t parameter, int64_t count, ResultColumns &columns) const;
  /// Whether result() says it all: sums are scaled, and all rows have one scale.
  bool isUniform() const { return form != Form::Sums && !isPerRow; }
  /// The place of the result from an element of y on.
  ResultPlace at(int64_t element, int64_t stride) const;
  bool hasResidual() const { return residual.present(); }
  /// What sums become. It refers to `columns`.
  SumsResult result(const ResultColumns &columns, int64_t rows, const ResultPlace &place) const;
  /// Rows of sums [rows][16] to their place; `aRow` is the first one's entry in A's scales.
  void store(const IgemmOps &ops, const ResultColumns &columns, const int32_t *sums, int64_t rows,
             int64_t aRow, const ResultPlace &place) const;

private:
  enum class Form : uint8_t { Sums, Bytes, Floats };
  void scaleBy(float factor, const ResultColumns &columns, float *scale) const;

  const KernelCall &call;
  IntegerOperands operands;
  const TensorView &bScales, &added, &residual;
  Form form;
  bool isPerRow = false; // A has a scale per row
  float aScale = 1, yScale = 1;
  ByteRange range = {};
  Epilogue epilogue; // of floats; of bytes it is in the range
};

} // namespace dspark
