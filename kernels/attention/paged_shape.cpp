// Shape functions of the paged key-value cache (paged.h says what the operands mean).
//
//   paged_attention: query [T,Hq,D]  key_cache [P,Hkv,N,D]  value_cache [P,Hkv,N,Dv]
//     query_offsets i32|i64[S+1]  sequence_lengths i32|i64[S]  block_table i32|i64[S,M]
//     key_scales? f32[P,Hkv,N]  value_scales? f32[P,Hkv,N]   with i8 caches: value = element * scale
//     sinks? [Hq]                                            one more score per head, whose value is 0
//     slopes? [Hq]                                           of a head's scores, by how far a key lies ahead
//                                                            (ALiBi, Press et al. 2108.12409)
//     -> [T,Hq,Dv]; with value_width = w the first w elements of each value: [T,Hq,w], so that one cache may
//        hold both (latent attention)
//   paged_cache_write: cache [P,Hkv,N,D]  rows [T,Hkv,D]  query_offsets  sequence_lengths  block_table
//     scales? f32[P,Hkv,N] -> cache with the rows in it, scales
#include "kernels/attention/attention.h"
#include "kernels/common/expect.h"

namespace dspark {
namespace {

bool isRowType(DType type) { return type == DType::F32 || type == DType::F16 || type == DType::BF16; }
bool isCacheType(DType type) { return isRowType(type) || type == DType::I8; }
bool isLayoutType(DType type) { return type == DType::I32 || type == DType::I64; }

struct CacheDims {
  Dim pages, heads, pageSize;
};

bool checkCache(InferContext &ctx, size_t i, CacheDims &d, Dim &width) {
  if (!expectType(ctx, i, isCacheType, "an f32, f16, bf16 or i8") || !expectRank(ctx, i, 4) ||
      !expectDim(ctx, i, 0, d.pages) || !expectDim(ctx, i, 1, d.heads) || !expectDim(ctx, i, 2, d.pageSize) ||
      !expectDim(ctx, i, 3, width))
    return false;
  if (!d.pageSize.is(0))
    return true;
  ctx.error = "pages of a cache must hold at least one token, found " + ctx.in[i].str();
  return false;
}

/// Scales [P,Hkv,N], which caches of i8 have and others have not.
bool checkScales(InferContext &ctx, size_t i, size_t cache, CacheDims &d) {
  bool isInteger = ctx.in[cache].type == DType::I8;
  if (ctx.in[cache].type != DType::Undefined && isInteger != ctx.has(i)) {
    ctx.error = "operand " + std::to_string(i) + ", scales, must be " + (isInteger ? "given" : "absent") +
                " with a cache of " + ctx.in[cache].str();
    return false;
  }
  return !ctx.has(i) ||
         (checkType(ctx, i, DType::F32) && expectRank(ctx, i, 3) && expectDim(ctx, i, 0, d.pages) &&
          expectDim(ctx, i, 1, d.heads) && expectDim(ctx, i, 2, d.pageSize));
}

/// query_offsets, sequence_lengths and block_table from operand `i` on.
bool checkLayout(InferContext &ctx, size_t i) {
  for (size_t k = 0; k < 3; ++k)
    if (!expectType(ctx, i + k, isLayoutType, "an i32 or i64") || !expectRank(ctx, i + k, k == 2 ? 2 : 1))
      return false;
  Dim sequences;
  if (!expectDim(ctx, i + 1, 0, sequences) || !expectDim(ctx, i + 2, 0, sequences))
    return false;
  Dim offsets = sequences + Dim(1);
  return sequences.isUnknown() || expectDim(ctx, i, 0, offsets);
}

bool checkWindow(InferContext &ctx) {
  return attrInRange(ctx, "left_window_size", -1, -1, INT64_MAX) && attrInRange(ctx, "is_causal", 1, 0, 1);
}

} // namespace

InferStatus inferPagedAttention(InferContext &ctx) {
  CacheDims cache;
  Dim tokens, qHeads, size, width;
  if (!checkCounts(ctx, 6, 10, 1, 1) || !expectType(ctx, 0, isRowType, "an f32, f16 or bf16") ||
      !expectRank(ctx, 0, 3) || !expectDim(ctx, 0, 0, tokens) || !expectDim(ctx, 0, 1, qHeads) ||
      !expectDim(ctx, 0, 2, size) || !checkCache(ctx, 1, cache, size) || !checkCache(ctx, 2, cache, width) ||
      !checkLayout(ctx, 3) || !checkScales(ctx, 6, 1, cache) || !checkScales(ctx, 7, 2, cache) ||
      !expectType(ctx, 8, isRowType, "an f32, f16 or bf16") || !expectRank(ctx, 8, 1) ||
      !expectDim(ctx, 8, 0, qHeads) || !expectType(ctx, 9, isRowType, "an f32, f16 or bf16") ||
      !expectRank(ctx, 9, 1) || !expectDim(ctx, 9, 0, qHeads) || !checkWindow(ctx))
    return InferStatus::Error;
  if (qHeads.isConst() && cache.heads.isConst() &&
      (cache.heads.value() <= 0 || qHeads.value() % cache.heads.value() != 0))
    return ctx.fail("query heads must be a multiple of key heads, found " + qHeads.str() + " and " +
                    cache.heads.str());
  if (!attrInRange(ctx, "value_width", 0, 0, width.isConst() ? width.value() : INT64_MAX))
    return InferStatus::Error;
  if (int64_t first = ctx.attrs.i("value_width", 0); first > 0)
    width = Dim(first);
  ctx.out[0] = TensorInfo::make(ctx.in[0].type, {tokens, qHeads, width});
  return InferStatus::Ok;
}

InferStatus inferPagedCacheWrite(InferContext &ctx) {
  CacheDims cache;
  Dim width;
  if (!checkCounts(ctx, 5, 6, 1, 2) || !checkCache(ctx, 0, cache, width) ||
      !expectType(ctx, 1, isRowType, "an f32, f16 or bf16") || !expectRank(ctx, 1, 3) ||
      !expectDim(ctx, 1, 1, cache.heads) || !expectDim(ctx, 1, 2, width) || !checkLayout(ctx, 2) ||
      !checkScales(ctx, 5, 0, cache))
    return InferStatus::Error;
  if ((ctx.out.size() > 1) != ctx.has(5))
    return ctx.fail("paged_cache_write makes scales exactly where it is given some");
  ctx.out[0] = TensorInfo::make(ctx.in[0].type, {cache.pages, cache.heads, cache.pageSize, width});
  if (ctx.out.size() > 1)
    ctx.out[1] = TensorInfo::make(DType::F32, {cache.pages, cache.heads, cache.pageSize});
  return InferStatus::Ok;
}

} // namespace dspark
