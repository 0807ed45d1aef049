// Shape functions of the signal family. Their results depend on the contents of scalar operands: lengths,
// steps, an axis.
#include "kernels/common/expect.h"
#include "kernels/common/families.h"
#include "kernels/signal/signal.h"

namespace dspark {
namespace {

bool isIndex(DType type) { return type == DType::I32 || type == DType::I64; }

bool expectIndexScalar(InferContext &ctx, size_t i) {
  return expectType(ctx, i, isIndex, "i32 or i64") && expectScalar(ctx, i);
}

// A known number must be in [low, kMaxDftLength].
bool checkLength(InferContext &ctx, const char *what, Dim length, int64_t low) {
  if (!length.isConst() || (length.value() >= low && length.value() <= kMaxDftLength))
    return true;
  ctx.error = std::string(what) + " must be in [" + std::to_string(low) + ", " +
              std::to_string(kMaxDftLength) + "], found " + length.str();
  return false;
}

// Attribute output_datatype as a type the kernels write.
bool outputType(InferContext &ctx, DType &type) {
  int64_t code = ctx.attrs.i("output_datatype", int64_t(DType::F32));
  type = code > 0 && code < kDTypeCount ? DType(code) : DType::Undefined;
  if (isPlainNumber(type) && type != DType::Bool)
    return true;
  ctx.error = "attribute output_datatype must be a numeric type, found " + std::to_string(code);
  return false;
}

} // namespace

// input [..., 1 | 2], dft_length?, axis? -> the axis has dft_length entries (half when one-sided), the last
// dim is 2 (1 for the one-sided inverse)
InferStatus inferDft(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 3, 1, 1) || !expectFloat(ctx, 0) || !expectRank(ctx, 0, 2, kMaxRank) ||
      !expectIndexScalar(ctx, 1) || !checkType(ctx, 2, DType::I64) || !expectScalar(ctx, 2))
    return InferStatus::Error;
  ctx.out[0].type = ctx.in[0].type;
  if (!ctx.in[0].hasRank)
    return InferStatus::Ok;
  int rank = ctx.in[0].rank();
  Dim last = ctx.in[0].dims.back(), axisValue = ctx.has(2) ? scalarInt(ctx, 2) : Dim(-2);
  if (last.isConst() && !last.is(1) && !last.is(2))
    return ctx.fail("the last dim must be 1 (real) or 2 (complex), found " + ctx.in[0].str());
  bool inverse = ctx.attrs.i("inverse", 0) != 0, oneSided = ctx.attrs.i("onesided", 0) != 0;
  ctx.out[0] = TensorInfo::make(ctx.in[0].type, ctx.in[0].dims);
  ctx.out[0].dims.back() = Dim(inverse && oneSided ? 1 : 2);
  if (!axisValue.isConst()) {
    std::fill(ctx.out[0].dims.begin(), ctx.out[0].dims.end() - 1, Dim());
    return askForContents(ctx, 2);
  }
  std::optional<int> axis = checkAxis(ctx, axisValue.value(), rank);
  if (!axis)
    return InferStatus::Error;
  if (*axis == rank - 1)
    return ctx.fail("axis must not be the last one, found " + axisValue.str());
  Dim &dim = ctx.out[0].dims[size_t(*axis)], length = dim;
  if (ctx.has(1))
    length = scalarInt(ctx, 1);
  else if (inverse && oneSided)
    length = Dim(2) * (dim - Dim(1));
  if (!checkLength(ctx, "dft_length", length, 1))
    return InferStatus::Error;
  dim = oneSided && !inverse ? floorDiv(length, Dim(2)) + Dim(1) : length;
  return ctx.has(1) && length.isUnknown() ? askForContents(ctx, 1) : InferStatus::Ok;
}

// signal [B,L,1 | 2] or, as exporters write it and onnxruntime takes it, [B,L] (real), frame_step, window? [n],
// frame_length? -> [B,frames,bins,2]
InferStatus inferStft(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 4, 1, 1) || !expectFloat(ctx, 0) || !expectRank(ctx, 0, 2, 3) ||
      !expectIndexScalar(ctx, 1) || !expectSameType(ctx, 2, 0) || !expectRank(ctx, 2, 1) ||
      !expectIndexScalar(ctx, 3))
    return InferStatus::Error;
  Dim last = dimAt(ctx, 0, 2), samples = dimAt(ctx, 0, 1), step = scalarInt(ctx, 1);
  if (last.isConst() && !last.is(1) && !last.is(2))
    return ctx.fail("the last dim must be 1 (real) or 2 (complex), found " + ctx.in[0].str());
  Dim length = ctx.has(3) ? scalarInt(ctx, 3) : ctx.has(2) ? dimAt(ctx, 2, 0) : samples;
  if (!checkLength(ctx, "frame_length", length, 1) || !checkLength(ctx, "frame_step", step, 1) ||
      !expectDim(ctx, 2, 0, length))
    return InferStatus::Error;
  if (samples.isConst() && length.isConst() && samples.value() < length.value())
    return ctx.fail("the signal must have at least " + length.str() + " samples, found " + ctx.in[0].str());
  Dim frames = floorDiv(samples - length, step) + Dim(1);
  Dim bins = ctx.attrs.i("onesided", 1) != 0 ? floorDiv(length, Dim(2)) + Dim(1) : length;
  ctx.out[0] = TensorInfo::make(ctx.in[0].type, {dimAt(ctx, 0, 0), frames, bins, Dim(2)});
  if (step.isUnknown())
    return askForContents(ctx, 1);
  return ctx.has(3) && length.isUnknown() ? askForContents(ctx, 3) : InferStatus::Ok;
}

// size -> [size]
InferStatus inferWindow(InferContext &ctx) {
  DType type;
  if (!checkCounts(ctx, 1, 1, 1, 1) || !expectIndexScalar(ctx, 0) || !outputType(ctx, type))
    return InferStatus::Error;
  Dim size = scalarInt(ctx, 0);
  if (!checkLength(ctx, "size", size, 0))
    return InferStatus::Error;
  ctx.out[0] = TensorInfo::make(type, {size});
  return size.isUnknown() ? askForContents(ctx, 0) : InferStatus::Ok;
}

// num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz -> [dft_length / 2 + 1,
// num_mel_bins]
InferStatus inferMelWeightMatrix(InferContext &ctx) {
  DType type;
  if (!checkCounts(ctx, 5, 5, 1, 1) || !expectIndexScalar(ctx, 0) || !expectIndexScalar(ctx, 1) ||
      !expectIndexScalar(ctx, 2) || !expectFloat(ctx, 3) || !expectFloat(ctx, 4) || !expectScalar(ctx, 3) ||
      !expectScalar(ctx, 4) || !outputType(ctx, type))
    return InferStatus::Error;
  Dim bins = scalarInt(ctx, 0), length = scalarInt(ctx, 1);
  if (!checkLength(ctx, "num_mel_bins", bins, 0) || !checkLength(ctx, "dft_length", length, 1))
    return InferStatus::Error;
  ctx.out[0] = TensorInfo::make(type, {floorDiv(length, Dim(2)) + Dim(1), bins});
  if (bins.isUnknown() || length.isUnknown())
    return askForContents(ctx, bins.isUnknown() ? 0 : 1);
  return InferStatus::Ok;
}

std::span<const OpEntry> signalOps() {
  static constexpr OpEntry kOps[] = {
      {"dft", inferDft},
      {"stft", inferStft},
      {"hann_window", inferWindow},
      {"hamming_window", inferWindow},
      {"blackman_window", inferWindow},
      {"mel_weight_matrix", inferMelWeightMatrix},
  };
  return kOps;
}

} // namespace dspark
