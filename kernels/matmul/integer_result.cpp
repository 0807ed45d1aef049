#include "kernels/matmul/integer_result.h"
#include "kernels/common/element.h"
#include "kernels/matmul/epilogue.h"
#include <algorithm>
#include <cmath>

namespace dspark {
namespace {

int64_t entry(const TensorView &t, int64_t i) { return t.elements() == 1 ? 0 : i % t.elements(); }

// Scales of `count` columns from entry `parameter` on; columns beyond have 0.
void readColumns(const TensorView &scales, int64_t parameter, int64_t count, float *out) {
  bool isSingle = !scales.present() || scales.elements() <= 1;
  float single = isSingle ? scaleAt(scales, 0) : 0.0f;
  if (!isSingle && scales.type == DType::F32) {
    const float *from = scales.as<float>() + parameter % scales.elements();
    for (int64_t j = 0; j < kIntegerColumns; ++j)
      out[j] = j < count ? from[j] : 0.0f;
    return;
  }
  for (int64_t j = 0; j < kIntegerColumns; ++j)
    out[j] = j >= count ? 0.0f : isSingle ? single : scaleAt(scales, parameter + j);
}

// The quantised form of a bound of the result, less the zero point. Rounding keeps order, so bounding after
// it gives what bounding before it does.
float quantizedBound(float bound, float scale, float low, float high) {
  float value = std::nearbyint(bound / scale);
  return value > low ? std::min(value, high) : low;
}

} // namespace

int16_t zeroAt(const TensorView &zero, int64_t i) {
  if (!zero.present() || zero.elements() == 0)
    return 0;
  return zero.type == DType::I8 ? zero.as<int8_t>()[entry(zero, i)] : zero.as<uint8_t>()[entry(zero, i)];
}
float scaleAt(const TensorView &scale, int64_t i) {
  float value = 1;
  if (scale.present() && scale.elements() > 0)
    dispatchFloat(scale.type, [&]<typename T>() { value = float(scale.as<T>()[entry(scale, i)]); });
  return value;
}

PanelZeros::PanelZeros(const TensorView &b, const TensorView &zero)
    : zero(zero), offset(b.type == DType::U8 ? 128 : 0), single(int16_t(zeroAt(zero, 0) - offset)),
      isSingle(!zero.present() || zero.elements() <= 1) {}

bool PanelZeros::read(int64_t parameter, int64_t columns, int16_t (&out)[kIntegerColumns]) const {
  bool isAny = false;
  for (int64_t j = 0; j < kIntegerColumns; ++j) {
    out[j] = j >= columns ? 0 : isSingle ? single : int16_t(zeroAt(zero, parameter + j) - offset);
    isAny |= out[j] != 0;
  }
  return isAny;
}

int64_t integerTileRows(int64_t depth) {
  // Rows of 16-bit values should stay in the L2 cache, but be enough to pay for the panels made for them.
  return std::clamp<int64_t>(448 * 1024 / std::max<int64_t>(2 * depth, 1), 16, kIntegerRows);
}

void takeOffZeros(int32_t *sums, int64_t rows, const int32_t *rowSums, const int16_t *zero) {
  for (int64_t r = 0; r < rows; ++r, sums += kIntegerColumns)
    for (int64_t j = 0; j < kIntegerColumns; ++j)
      sums[j] = int32_t(uint32_t(sums[j]) - uint32_t(rowSums[r]) * uint32_t(int32_t(zero[j])));
}

IntegerResult::IntegerResult(const KernelCall &call, const IntegerOperands &at)
    : call(call), at(at), bScales(call.input(at.bScale)), added(call.input(at.bias)) {
  DType type = call.out[0].type;
  form = type == DType::I32 ? Form::Sums : type == DType::F32 ? Form::Floats : Form::Bytes;
  if (form == Form::Sums)
    return;
  isPerRow = call.input(at.aScale).present() && call.input(at.aScale).elements() > 1;
  aScale = scaleAt(call.input(at.aScale), 0);
  if (form == Form::Floats)
    return;
  yScale = scaleAt(call.input(at.yScale), 0);
  bytes.isSigned = type == DType::I8;
  bytes.zero = zeroAt(call.input(at.yZero), 0);
  float low = float((bytes.isSigned ? -128 : 0) - bytes.zero), high = low + 255;
  bytes.low = low;
  bytes.high = high;
  Epilogue epilogue;
  epilogue.read(call.attrs);
  if (epilogue.activation == Activation::Relu)
    bytes.low = quantizedBound(0, yScale, low, high);
  if (epilogue.activation == Activation::Clip) {
    bytes.low = quantizedBound(epilogue.alpha, yScale, low, high);
    bytes.high = quantizedBound(epilogue.beta, yScale, low, high);
  }
}

void IntegerResult::choose(int64_t parameter, int64_t count) {
  columns = count;
  if (form == Form::Sums)
    return;
  readColumns(bScales, parameter, count, bScale);
  bool hasInts = added.type == DType::I32;
  int64_t first = added.present() && added.elements() > 0 ? parameter % added.elements() : 0;
  for (int64_t j = 0; j < kIntegerColumns; ++j)
    bias[j] = hasInts && j < count ? added.as<int32_t>()[first + j] : 0;
  for (int64_t j = 0; j < kIntegerColumns; ++j)
    offset[j] = 0;
  if (added.type == DType::F32)
    for (int64_t j = 0; j < count; ++j)
      offset[j] = added.as<float>()[first + j] / yScale;
}

void IntegerResult::storeScaled(const IgemmOps &ops, const int32_t *sums, int64_t rows, float factor,
                                std::byte *y, int64_t stride) const {
  alignas(64) float scale[kIntegerColumns];
  for (int64_t j = 0; j < kIntegerColumns; ++j)
    scale[j] = factor * bScale[j] / yScale;
  const int32_t *ints = added.type == DType::I32 ? bias : nullptr;
  if (form == Form::Floats) {
    ops.toFloats(sums, {ints, scale, offset, columns, rows, stride, reinterpret_cast<float *>(y)});
    return;
  }
  SumsToBytes rule = bytes;
  rule.bias = ints;
  rule.scale = scale;
  rule.offset = offset;
  rule.columns = columns;
  rule.rows = rows;
  rule.stride = stride;
  rule.y = y;
  ops.toBytes(sums, rule);
}

void IntegerResult::store(const IgemmOps &ops, const int32_t *sums, int64_t rows, int64_t aRow, std::byte *y,
                          int64_t stride) const {
  if (form == Form::Sums) {
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(sums + r * kIntegerColumns, columns, reinterpret_cast<int32_t *>(y) + r * stride);
    return;
  }
  if (!isPerRow)
    return storeScaled(ops, sums, rows, aScale, y, stride);
  for (int64_t r = 0; r < rows; ++r)
    storeScaled(ops, sums + r * kIntegerColumns, 1, scaleAt(call.in[at.aScale], aRow + r),
                y + r * stride * elementBytes(), stride);
}

} // namespace dspark
