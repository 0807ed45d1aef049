// Shape functions of the loss family.
#include "kernels/common/expect.h"
#include "kernels/common/families.h"
#include "kernels/loss/loss.h"

namespace dspark {
namespace {

// R, T, then `groups` tensors per optimised tensor, group by group; the results are the first tensors and
// then those of all groups but the gradients, which are the second.
InferStatus inferOptimiser(InferContext &ctx, size_t groups) {
  if (ctx.in.size() < 2 + groups || (ctx.in.size() - 2) % groups != 0)
    return ctx.fail("expected a rate, a count and " + std::to_string(groups) +
                    " operands per tensor, found " + std::to_string(ctx.in.size()));
  size_t tensors = (ctx.in.size() - 2) / groups;
  if (ctx.out.size() != tensors * (groups - 1))
    return ctx.fail("expected " + std::to_string(tensors * (groups - 1)) + " results, found " +
                    std::to_string(ctx.out.size()));
  if (!expectFloat(ctx, 0) || !expectScalar(ctx, 0) || !checkType(ctx, 1, DType::I64) ||
      !expectScalar(ctx, 1))
    return InferStatus::Error;
  for (size_t i = 0; i < ctx.in.size(); ++i)
    if (!ctx.has(i))
      return ctx.fail("operand " + std::to_string(i) + " is missing");
  for (size_t t = 0; t < tensors; ++t) {
    const TensorInfo &first = ctx.in[2 + t];
    std::vector<Dim> dims = first.dims;
    for (size_t g = 0; g < groups; ++g) {
      size_t i = 2 + g * tensors + t;
      if (!expectFloat(ctx, i) || !expectSameType(ctx, i, 2 + t) ||
          (first.hasRank && !expectRank(ctx, i, first.rank())))
        return InferStatus::Error;
      for (int axis = 0; axis < first.rank(); ++axis)
        if (!expectDim(ctx, i, axis, dims[size_t(axis)]))
          return InferStatus::Error;
    }
    for (size_t g = 0; g < groups - 1; ++g) {
      TensorInfo &result = ctx.out[g * tensors + t];
      result.type = first.type;
      result.hasRank = first.hasRank;
      result.dims = dims;
    }
  }
  return InferStatus::Ok;
}

} // namespace

// scores [N,C,d...], labels [N,d...], weights? [C] -> loss [N,d...] or scalar, log_prob? like scores
InferStatus inferLoss(InferContext &ctx) {
  auto isIndex = [](DType type) { return type == DType::I32 || type == DType::I64; };
  if (!checkCounts(ctx, 2, 3, 1, 2) || !expectFloat(ctx, 0) || !expectType(ctx, 1, isIndex, "i32 or i64") ||
      !expectSameType(ctx, 2, 0) || !expectRank(ctx, 2, 1) || !expectRank(ctx, 0, 2, kMaxRank))
    return InferStatus::Error;
  std::string_view reduction = ctx.attrs.s("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return ctx.fail("attribute reduction must be none, sum or mean, found " + std::string(reduction));
  const TensorInfo &scores = ctx.in[0];
  DType type = scores.type;
  ctx.out[0].type = type;
  if (reduction != "none")
    ctx.out[0] = TensorInfo::make(type, {});
  if (ctx.out.size() > 1)
    ctx.out[1].type = type;
  if (!scores.hasRank)
    return InferStatus::Ok;
  if (!expectRank(ctx, 1, scores.rank() - 1))
    return InferStatus::Error;
  std::vector<Dim> samples;
  for (int axis = 0; axis < scores.rank(); ++axis) {
    if (axis == 1)
      continue;
    samples.push_back(scores.dims[size_t(axis)]);
    if (!expectDim(ctx, 1, axis ? axis - 1 : 0, samples.back()))
      return InferStatus::Error;
  }
  Dim classes = scores.dims[1];
  if (!expectDim(ctx, 2, 0, classes))
    return InferStatus::Error;
  if (reduction == "none")
    ctx.out[0] = TensorInfo::make(type, std::move(samples));
  if (ctx.out.size() > 1)
    ctx.out[1] = TensorInfo::make(type, scores.dims);
  return InferStatus::Ok;
}

InferStatus inferMomentum(InferContext &ctx) {
  std::string_view mode = ctx.attrs.s("mode", "standard");
  if (mode != "standard" && mode != "nesterov")
    return ctx.fail("attribute mode must be standard or nesterov, found " + std::string(mode));
  return inferOptimiser(ctx, 3);
}
InferStatus inferAdagrad(InferContext &ctx) { return inferOptimiser(ctx, 3); }
InferStatus inferAdam(InferContext &ctx) { return inferOptimiser(ctx, 4); }

std::span<const OpEntry> lossOps() {
  static constexpr OpEntry kOps[] = {
      {"negative_log_likelihood_loss", inferLoss},
      {"softmax_cross_entropy_loss", inferLoss},
      {"momentum", inferMomentum},
      {"adagrad", inferAdagrad},
      {"adam", inferAdam},
  };
  return kOps;
}

} // namespace dspark
