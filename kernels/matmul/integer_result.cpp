#include "kernels/matmul/integer_result.h"
#include "kernels/common/element.h"
#include <algorithm>
#include <cmath>

namespace dspark {
namespace {

int64_t entry(const TensorView &t, int64_t i) { return t.elements() == 1 ? 0 : i % t.elements(); }

// `count` entries from `parameter` on of scales that may be one for all; columns beyond have 0.
void readScales(const TensorView &scales, int64_t parameter, int64_t count, float *out) {
  std::fill_n(out, kIntegerColumns, 0.0f);
  if (!scales.present() || scales.elements() <= 1)
    std::fill_n(out, count, scaleAt(scales, 0));
  else if (scales.type == DType::F32)
    std::copy_n(scales.as<float>() + parameter % scales.elements(), count, out);
  else
    for (int64_t j = 0; j < count; ++j)
      out[j] = scaleAt(scales, parameter + j);
}

// The quantised form of a bound of the result, less the zero point. Rounding keeps order, so bounding after
// it gives what bounding before it does.
int16_t quantizedBound(float bound, float scale, const ByteRange &range) {
  float value = std::nearbyint(bound / scale);
  return value > range.low ? int16_t(std::min(value, float(range.high))) : range.low;
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
  std::fill_n(out, kIntegerColumns, int16_t(0));
  if (isSingle) {
    std::fill_n(out, columns, single);
    return single != 0 && columns > 0;
  }
  int64_t first = parameter % zero.elements(), any = 0;
  for (int64_t j = 0; j < columns; ++j) {
    out[j] = int16_t((zero.type == DType::I8 ? zero.as<int8_t>()[first + j] : zero.as<uint8_t>()[first + j]) -
                     offset);
    any |= out[j];
  }
  return any != 0;
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

IntegerResult::IntegerResult(const KernelCall &call, const IntegerOperands &operands)
    : call(call), operands(operands), bScales(call.input(operands.bScale)), added(call.input(operands.bias)),
      residual(call.input(operands.residual)) {
  DType type = call.out[0].type;
  form = type == DType::I32 ? Form::Sums : type == DType::F32 ? Form::Floats : Form::Bytes;
  if (form == Form::Sums)
    return;
  const TensorView &aScales = call.input(operands.aScale);
  isPerRow = aScales.present() && aScales.elements() > 1;
  aScale = scaleAt(aScales, 0);
  epilogue.read(call.attrs);
  if (form == Form::Floats)
    return;
  yScale = scaleAt(call.input(operands.yScale), 0);
  range = ByteRange::of(type == DType::I8, zeroAt(call.input(operands.yZero), 0));
  if (epilogue.activation == Activation::Relu)
    range.low = quantizedBound(0, yScale, range);
  if (epilogue.activation == Activation::Clip) {
    ByteRange whole = range;
    range.low = quantizedBound(epilogue.alpha, yScale, whole);
    range.high = quantizedBound(epilogue.beta, yScale, whole);
  }
}

void IntegerResult::read(int64_t parameter, int64_t count, ResultColumns &columns) const {
  columns.count = count;
  if (form == Form::Sums)
    return;
  readScales(bScales, parameter, count, columns.bScale);
  scaleBy(aScale, columns, columns.scale);
  std::fill_n(columns.bias, kIntegerColumns, 0);
  std::fill_n(columns.offset, kIntegerColumns, 0.0f);
  int64_t first = added.present() && added.elements() > 0 ? parameter % added.elements() : 0;
  if (added.type == DType::I32)
    std::copy_n(added.as<int32_t>() + first, count, columns.bias);
  if (added.type == DType::F32)
    for (int64_t j = 0; j < count; ++j)
      columns.offset[j] = added.as<float>()[first + j] / yScale;
}

void IntegerResult::scaleBy(float factor, const ResultColumns &columns, float *scale) const {
  for (int64_t j = 0; j < kIntegerColumns; ++j)
    scale[j] = factor * columns.bScale[j] / yScale;
}

ResultPlace IntegerResult::at(int64_t element, int64_t stride) const {
  return {call.out[0].as<std::byte>() + element * elementBytes(),
          residual.present() ? residual.as<float>() + element : nullptr, stride};
}

SumsResult IntegerResult::result(const ResultColumns &columns, int64_t rows, const ResultPlace &place) const {
  float *floats = form == Form::Floats ? reinterpret_cast<float *>(place.y) : nullptr;
  return {columns.bias, columns.scale, columns.offset, columns.count,  rows,    place.stride,
          place.y,      floats,        range,          place.residual, epilogue};
}

void IntegerResult::store(const IgemmOps &ops, const ResultColumns &columns, const int32_t *sums,
                          int64_t rows, int64_t aRow, const ResultPlace &place) const {
  if (form == Form::Sums) {
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(sums + r * kIntegerColumns, columns.count,
                  reinterpret_cast<int32_t *>(place.y) + r * place.stride);
    return;
  }
  if (!isPerRow)
    return ops.finish(sums, result(columns, rows, place));
  alignas(64) float scale[kIntegerColumns];
  for (int64_t r = 0; r < rows; ++r) {
    scaleBy(scaleAt(call.in[operands.aScale], aRow + r), columns, scale);
    int64_t first = r * place.stride;
    SumsResult row = result(
        columns, 1,
        {place.y + first * elementBytes(), place.residual ? place.residual + first : nullptr, place.stride});
    row.scale = scale;
    ops.finish(sums + r * kIntegerColumns, row);
  }
}

} // namespace dspark
