#include "kernels/common/expect.h"
#include "kernels/common/families.h"
#include "kernels/norm/norm.h"

namespace dspark {

std::span<const OpEntry> normOps() {
  using namespace norm_ops;
  static const OpEntry ops[] = {
      {.name = "softmax", .infer = inferSoftmax, .inPlace = 1},
      {.name = "layer_norm", .infer = inferLayerNorm, .inPlace = 1},
      {.name = "batch_norm", .infer = inferBatchNorm, .inPlace = 1},
      {.name = "instance_norm", .infer = inferInstanceNorm, .inPlace = 1},
      {.name = "group_norm", .infer = inferGroupNorm, .inPlace = 1},
      {.name = "lrn", .infer = inferLrn},
      {.name = "lp_norm", .infer = inferLpNorm},
      {.name = "mean_variance_norm", .infer = inferMeanVarianceNorm},
  };
  return ops;
}

namespace norm_ops {
namespace {

void likeOperand0(InferContext &ctx) {
  ctx.out[0].type = ctx.in[0].type;
  ctx.out[0].hasRank = ctx.in[0].hasRank;
  ctx.out[0].dims = ctx.in[0].dims;
}

// Operand 0 is a floating-point tensor of at least `low` dims; the result has its type and dims.
bool checkInput(InferContext &ctx, int low) {
  if (!expectFloat(ctx, 0) || !expectRank(ctx, 0, low, kMaxRank))
    return false;
  likeOperand0(ctx);
  return true;
}

// Operands [first, last] have one dim of the size of the channels, dim 1 of operand 0.
bool checkPerChannel(InferContext &ctx, size_t first, size_t last) {
  for (size_t i = first; i <= last; ++i) {
    Dim channels = dimAt(ctx, 0, 1);
    if (!expectFloat(ctx, i) || !expectRank(ctx, i, 1) || !expectDim(ctx, i, 0, channels))
      return false;
  }
  return true;
}

} // namespace

InferStatus inferSoftmax(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1) || !checkInput(ctx, 0))
    return InferStatus::Error;
  std::string_view kind = ctx.attrs.s("kind", "softmax");
  if (kind != "softmax" && kind != "log_softmax" && kind != "hardmax")
    return ctx.fail("kind is \"" + std::string(kind) + "\", expected softmax, log_softmax or hardmax");
  // A scalar is its own only element.
  const TensorInfo &x = ctx.in[0];
  if (x.hasRank && x.rank() > 0 && !checkAxis(ctx, ctx.attrs.i("axis", -1), x.rank()))
    return InferStatus::Error;
  return InferStatus::Ok;
}

// y and, optionally, the mean and the inverse standard deviation of each normalised part (for rms, whose mean
// is not taken, only results 0 and 1: the inverse root mean square is result 2 all the same).
InferStatus inferLayerNorm(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 3, 1, 3) || !checkInput(ctx, 1))
    return InferStatus::Error;
  std::string_view kind = ctx.attrs.s("kind", "layer");
  if (kind != "layer" && kind != "rms")
    return ctx.fail("kind is \"" + std::string(kind) + "\", expected layer or rms");
  const TensorInfo &x = ctx.in[0];
  int64_t stash = ctx.attrs.i("stash_type", 1);
  if (stash != int64_t(DType::F32) && stash != int64_t(DType::F64) && stash != int64_t(DType::BF16) &&
      stash != int64_t(DType::F16))
    return ctx.fail("stash_type is " + std::to_string(stash) + ", expected a floating-point type");
  for (size_t i = 1; i < ctx.out.size(); ++i)
    ctx.out[i].type = DType(stash);
  if (!x.hasRank)
    return InferStatus::Ok;
  std::optional<int> axis = checkAxis(ctx, ctx.attrs.i("axis", -1), x.rank());
  if (!axis)
    return InferStatus::Error;
  for (size_t i = 1; i < ctx.out.size(); ++i) {
    ctx.out[i] = TensorInfo::make(DType(stash), x.dims);
    for (int d = *axis; d < x.rank(); ++d)
      ctx.out[i].dims[size_t(d)] = Dim(1);
  }
  // scale and bias broadcast to the operand.
  for (size_t i = 1; i <= 2; ++i) {
    if (!ctx.has(i) || !ctx.in[i].hasRank)
      continue;
    const TensorInfo &scale = ctx.in[i];
    bool fits = scale.rank() <= x.rank();
    for (int d = 0; fits && d < scale.rank(); ++d) {
      Dim dim = scale.dims[size_t(d)], whole = x.dims[size_t(x.rank() - scale.rank() + d)];
      fits = dim.is(1) || mergeDims(dim, whole);
    }
    if (!fits || !isPlainFloat(scale.type))
      return ctx.fail("operand " + std::to_string(i) + " " + scale.str() + " does not fit " + x.str());
  }
  return InferStatus::Ok;
}

InferStatus inferBatchNorm(InferContext &ctx) {
  if (!checkCounts(ctx, 5, 5, 1, 1) || !checkInput(ctx, 1) || !checkPerChannel(ctx, 1, 4))
    return InferStatus::Error;
  return InferStatus::Ok;
}

InferStatus inferInstanceNorm(InferContext &ctx) {
  if (!checkCounts(ctx, 3, 3, 1, 1) || !checkInput(ctx, 2) || !checkPerChannel(ctx, 1, 2))
    return InferStatus::Error;
  return InferStatus::Ok;
}

// scale and bias have one number per channel (opset 21) or per group (opset 18).
InferStatus inferGroupNorm(InferContext &ctx) {
  if (!checkCounts(ctx, 3, 3, 1, 1) || !checkInput(ctx, 2))
    return InferStatus::Error;
  Dim channels = dimAt(ctx, 0, 1);
  int64_t groups = ctx.attrs.i("num_groups", 0);
  if (groups < 1 || (channels.isConst() && channels.value() % groups != 0))
    return ctx.fail("num_groups is " + std::to_string(groups) + ", which does not divide the channels of " +
                    ctx.in[0].str());
  for (size_t i = 1; i <= 2; ++i) {
    if (dimAt(ctx, i, 0).is(groups) ? !expectFloat(ctx, i) || !expectRank(ctx, i, 1)
                                    : !checkPerChannel(ctx, i, i))
      return InferStatus::Error;
  }
  return InferStatus::Ok;
}

InferStatus inferLrn(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1) || !checkInput(ctx, 2))
    return InferStatus::Error;
  int64_t size = ctx.attrs.i("size", 0);
  return size >= 1 ? InferStatus::Ok : ctx.fail("size is " + std::to_string(size) + ", expected 1 or more");
}

InferStatus inferLpNorm(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1) || !checkInput(ctx, 1))
    return InferStatus::Error;
  int64_t p = ctx.attrs.i("p", 2);
  if (p != 1 && p != 2)
    return ctx.fail("p is " + std::to_string(p) + ", expected 1 or 2");
  const TensorInfo &x = ctx.in[0];
  return !x.hasRank || checkAxis(ctx, ctx.attrs.i("axis", -1), x.rank()) ? InferStatus::Ok
                                                                         : InferStatus::Error;
}

InferStatus inferMeanVarianceNorm(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1) || !checkInput(ctx, 0))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  const int64_t usual[] = {0, 2, 3};
  std::span<const int64_t> axes = ctx.attrs.has("axes") ? ctx.attrs.ints("axes") : usual;
  for (int64_t axis : axes)
    if (x.hasRank && !checkAxis(ctx, axis, x.rank()))
      return InferStatus::Error;
  return InferStatus::Ok;
}

} // namespace norm_ops
} // namespace dspark
