// Operators that exchange blocks of channels and pixels, and those that only rearrange within the same dims.
#include "kernels/common/infer.h"
#include "kernels/movement/movement.h"

namespace dspark::movement {
namespace {

// Checks a block operator's operand (N, C, H, W) and attribute; blocksize squared stays far from overflow.
bool checkBlock(InferContext &ctx, int64_t &block) {
  if (!checkCounts(ctx, 1, 1, 1, 1))
    return false;
  block = ctx.attrs.i("blocksize", 0);
  if (block < 1 || block > 65536)
    ctx.error = "blocksize is " + std::to_string(block) + ", expected 1 to 65536";
  else if (ctx.in[0].hasRank && ctx.in[0].rank() != 4)
    ctx.error = "expected a tensor of 4 dims, found " + ctx.in[0].str();
  return ctx.error.empty();
}

// dim / factor, which must divide it.
bool divideDim(InferContext &ctx, Dim dim, int64_t factor, Dim &result) {
  if (dim.isConst() && dim.value() % factor != 0) {
    ctx.error =
        "dim " + dim.str() + " of " + ctx.in[0].str() + " does not divide by " + std::to_string(factor);
    return false;
  }
  Dim above[] = {dim}, below[] = {Dim(factor)};
  result = exactQuotient(above, below);
  return true;
}

} // namespace

InferStatus inferDepthToSpace(InferContext &ctx) {
  int64_t block;
  if (!checkBlock(ctx, block))
    return InferStatus::Error;
  std::string_view mode = ctx.attrs.s("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return ctx.fail("mode is \"" + std::string(mode) + "\", expected DCR or CRD");
  const TensorInfo &x = ctx.in[0];
  ctx.out[0] = TensorInfo::make(x.type, std::vector<Dim>(4));
  if (!x.hasRank)
    return InferStatus::Ok;
  Dim channels;
  if (!divideDim(ctx, x.dims[1], block * block, channels))
    return InferStatus::Error;
  ctx.out[0].dims = {x.dims[0], channels, x.dims[2] * Dim(block), x.dims[3] * Dim(block)};
  return InferStatus::Ok;
}

InferStatus inferSpaceToDepth(InferContext &ctx) {
  int64_t block;
  if (!checkBlock(ctx, block))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  ctx.out[0] = TensorInfo::make(x.type, std::vector<Dim>(4));
  if (!x.hasRank)
    return InferStatus::Ok;
  Dim height, width;
  if (!divideDim(ctx, x.dims[2], block, height) || !divideDim(ctx, x.dims[3], block, width))
    return InferStatus::Error;
  ctx.out[0].dims = {x.dims[0], x.dims[1] * Dim(block * block), height, width};
  return InferStatus::Ok;
}

InferStatus inferReverseSequence(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1) || !checkType(ctx, 1, DType::I64))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0], &lengths = ctx.in[1];
  int64_t batch = ctx.attrs.i("batch_axis", 1), time = ctx.attrs.i("time_axis", 0);
  if (!((batch == 0 && time == 1) || (batch == 1 && time == 0)))
    return ctx.fail("batch_axis and time_axis are " + std::to_string(batch) + " and " + std::to_string(time) +
                    ", expected 0 and 1 in either order");
  ctx.out[0].type = x.type;
  if (!x.hasRank)
    return InferStatus::Ok;
  if (x.rank() < 2)
    return ctx.fail("expected a tensor of 2 or more dims, found " + x.str());
  ctx.out[0] = TensorInfo::make(x.type, x.dims);
  if (lengths.hasRank && (lengths.rank() != 1 || !mergeDims(lengths.dims[0], x.dims[size_t(batch)])))
    return ctx.fail("sequence_lens is " + lengths.str() + ", expected " + x.dims[size_t(batch)].str() +
                    " entries");
  return InferStatus::Ok;
}

InferStatus inferTrilu(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 2, 1, 1) || !checkType(ctx, 1, DType::I64))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  if (x.hasRank && x.rank() < 2)
    return ctx.fail("expected a tensor of 2 or more dims, found " + x.str());
  if (int64_t count = ctx.has(1) ? knownElements(ctx.in[1]) : 1; count >= 0 && count != 1)
    return ctx.fail("k must have one element, found " + ctx.in[1].str());
  ctx.out[0].type = x.type;
  ctx.out[0].hasRank = x.hasRank;
  ctx.out[0].dims = x.dims;
  return InferStatus::Ok;
}

} // namespace dspark::movement
