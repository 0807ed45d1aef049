// Shape functions of the random family.
#include "kernels/common/expect.h"
#include "kernels/common/families.h"

namespace dspark {
namespace {

// Attribute dtype, else `otherwise`, as a type that `allowed` accepts.
bool resultType(InferContext &ctx, DType otherwise, bool (*allowed)(DType), DType &type) {
  int64_t code = ctx.attrs.i("dtype", int64_t(otherwise));
  type = code > 0 && code < kDTypeCount ? DType(code) : DType::Undefined;
  if (allowed(type))
    return true;
  ctx.error = "attribute dtype must be a type that can hold the results, found " + std::to_string(code);
  return false;
}

TensorInfo like(const TensorInfo &operand, DType type) {
  TensorInfo result;
  result.type = type;
  result.hasRank = operand.hasRank;
  result.dims = operand.dims;
  return result;
}

InferStatus inferRandom(InferContext &ctx) {
  DType type;
  if (!checkCounts(ctx, 0, 0, 1, 1) || !resultType(ctx, DType::F32, isPlainFloat, type))
    return InferStatus::Error;
  std::span<const int64_t> shape = ctx.attrs.ints("shape");
  if (!checkRank(ctx, shape.size()))
    return InferStatus::Error;
  std::vector<Dim> dims;
  for (int64_t dim : shape) {
    if (dim < 0)
      return ctx.fail("attribute shape must not be negative, found " + std::to_string(dim));
    dims.push_back(Dim(dim));
  }
  ctx.out[0] = TensorInfo::make(type, std::move(dims));
  return InferStatus::Ok;
}

InferStatus inferRandomLike(InferContext &ctx) {
  DType type;
  if (!checkCounts(ctx, 1, 1, 1, 1) || !resultType(ctx, ctx.in[0].type, isPlainFloat, type))
    return InferStatus::Error;
  ctx.out[0] = like(ctx.in[0], type);
  return InferStatus::Ok;
}

InferStatus inferBernoulli(InferContext &ctx) {
  DType type;
  if (!checkCounts(ctx, 1, 1, 1, 1) || !expectFloat(ctx, 0) ||
      !resultType(ctx, ctx.in[0].type, isPlainNumber, type))
    return InferStatus::Error;
  ctx.out[0] = like(ctx.in[0], type);
  return InferStatus::Ok;
}

// logits [B,C] -> i32 | i64 [B,sample_size]
InferStatus inferMultinomial(InferContext &ctx) {
  auto isIndex = [](DType type) { return type == DType::I32 || type == DType::I64; };
  DType type;
  if (!checkCounts(ctx, 1, 1, 1, 1) || !expectFloat(ctx, 0) || !expectRank(ctx, 0, 2) ||
      !resultType(ctx, DType::I32, isIndex, type))
    return InferStatus::Error;
  std::optional<int64_t> samples = attrInRange(ctx, "sample_size", 1, 0, int64_t(1) << 40);
  if (!samples)
    return InferStatus::Error;
  if (dimAt(ctx, 0, 1).is(0))
    return ctx.fail("there must be a class to choose, found " + ctx.in[0].str());
  ctx.out[0] = TensorInfo::make(type, {dimAt(ctx, 0, 0), Dim(*samples)});
  return InferStatus::Ok;
}

// data, ratio?, training_mode? -> output, mask?
InferStatus inferDropout(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 3, 1, 2) || !expectFloat(ctx, 0) || !expectFloat(ctx, 1) ||
      !checkType(ctx, 2, DType::Bool) || !expectScalar(ctx, 1) || !expectScalar(ctx, 2))
    return InferStatus::Error;
  ctx.out[0] = like(ctx.in[0], ctx.in[0].type);
  if (ctx.out.size() > 1)
    ctx.out[1] = like(ctx.in[0], DType::Bool);
  return InferStatus::Ok;
}

} // namespace

std::span<const OpEntry> randomOps() {
  static constexpr OpEntry kOps[] = {
      {"random_uniform", inferRandom},
      {"random_normal", inferRandom},
      {"random_uniform_like", inferRandomLike},
      {"random_normal_like", inferRandomLike},
      {"bernoulli", inferBernoulli},
      {"multinomial", inferMultinomial},
      {"dropout", inferDropout, 0b1},
  };
  return kOps;
}

} // namespace dspark
