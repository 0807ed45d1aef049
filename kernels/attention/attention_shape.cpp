// Shape functions of attention and flex_attention.
//
// attention, operands and results as ONNX Attention-25:
//   Q [B,Hq,S,D] | [B,S,Hq*D]   K [B,Hkv,N,D] | [B,N,Hkv*D]   V [B,Hkv,N,Dv] | [B,N,Hkv*Dv]
//   attn_mask? broadcast to [B,Hq,S,T], its last dim may be shorter   past_key? [B,Hkv,P,D]   past_value?
//   [B,Hkv,P,Dv] nonpad_kv_seqlen? i64[B]                                           T = P + N
//   -> Y like Q with Dv, present_key? [B,Hkv,T,D], present_value? [B,Hkv,T,Dv], qk_matmul_output? [B,Hq,S,T]
// Attribute arithmetic, which ONNX has not: "bf16" lets a kernel round Q, K, the weights and V to bf16.
// Attribute hidden_rows, which ONNX has not: "zero" (rows that see no key, or only keys at -inf, give 0) or
// "nan". flex_attention takes Q, K, V of rank 4 and makes Y; its modifier subgraphs are lowered by the
// frontend or refused.
#include "kernels/attention/attention.h"
#include "kernels/common/expect.h"
#include "kernels/common/families.h"

namespace dspark {
namespace {

struct AttentionDims {
  Dim batch, qHeads, kvHeads, queries, keys, headSize, valueSize;
};

// hidden = heads * size, where heads is a positive number.
bool splitHidden(InferContext &ctx, size_t operand, int64_t heads, Dim &size) {
  Dim hidden = dimAt(ctx, operand, 2);
  if (hidden.isConst() && hidden.value() % heads != 0) {
    ctx.error = "dim 2 of operand " + std::to_string(operand) + " must be a multiple of " +
                std::to_string(heads) + " heads, found " + ctx.in[operand].str();
    return false;
  }
  std::optional<Dim> both = mergeDims(size, floorDiv(hidden, Dim(heads)));
  if (!both) {
    ctx.error = "operand " + std::to_string(operand) + " must have head size " + size.str() + ", found " +
                ctx.in[operand].str();
    return false;
  }
  size = *both;
  return true;
}

bool readRank3(InferContext &ctx, AttentionDims &d) {
  constexpr int64_t kMaxHeads = 1 << 20;
  std::optional<int64_t> qHeads = attrInRange(ctx, "q_num_heads", 0, 1, kMaxHeads);
  std::optional<int64_t> kvHeads = qHeads ? attrInRange(ctx, "kv_num_heads", 0, 1, kMaxHeads) : std::nullopt;
  if (!kvHeads)
    return false;
  d.qHeads = Dim(*qHeads);
  d.kvHeads = Dim(*kvHeads);
  return expectDim(ctx, 0, 0, d.batch) && expectDim(ctx, 1, 0, d.batch) && expectDim(ctx, 2, 0, d.batch) &&
         expectDim(ctx, 0, 1, d.queries) && expectDim(ctx, 1, 1, d.keys) && expectDim(ctx, 2, 1, d.keys) &&
         splitHidden(ctx, 0, *qHeads, d.headSize) && splitHidden(ctx, 1, *kvHeads, d.headSize) &&
         splitHidden(ctx, 2, *kvHeads, d.valueSize);
}

bool readRank4(InferContext &ctx, AttentionDims &d) {
  return expectDim(ctx, 0, 0, d.batch) && expectDim(ctx, 1, 0, d.batch) && expectDim(ctx, 2, 0, d.batch) &&
         expectDim(ctx, 0, 1, d.qHeads) && expectDim(ctx, 1, 1, d.kvHeads) &&
         expectDim(ctx, 2, 1, d.kvHeads) && expectDim(ctx, 0, 2, d.queries) && expectDim(ctx, 1, 2, d.keys) &&
         expectDim(ctx, 2, 2, d.keys) && expectDim(ctx, 0, 3, d.headSize) &&
         expectDim(ctx, 1, 3, d.headSize) && expectDim(ctx, 2, 3, d.valueSize);
}

bool checkHeads(InferContext &ctx, const AttentionDims &d) {
  if (!d.qHeads.isConst() || !d.kvHeads.isConst())
    return true;
  if (d.kvHeads.value() > 0 && d.qHeads.value() % d.kvHeads.value() == 0)
    return true;
  ctx.error =
      "query heads must be a multiple of key heads, found " + d.qHeads.str() + " and " + d.kvHeads.str();
  return false;
}

// The common rank of Q, K and V: 3, 4, or 0 when none is known.
bool commonRank(InferContext &ctx, int &rank) {
  rank = 0;
  for (size_t i = 0; i < 3; ++i) {
    if (!ctx.in[i].hasRank)
      continue;
    if (!expectRank(ctx, i, rank ? rank : 3, rank ? rank : 4))
      return false;
    rank = ctx.in[i].rank();
  }
  return true;
}

bool checkMask(InferContext &ctx, const AttentionDims &d, Dim total) {
  if (!ctx.has(3) || !ctx.in[3].hasRank)
    return true;
  const TensorInfo &mask = ctx.in[3];
  if (!expectRank(ctx, 3, 1, 4))
    return false;
  const Dim full[] = {d.batch, d.qHeads, d.queries, total};
  for (int i = 0, rank = mask.rank(); i < rank; ++i) {
    Dim dim = mask.dims[size_t(i)], limit = full[4 - rank + i];
    if (!dim.isConst() || !limit.isConst())
      continue;
    bool isLast = i == rank - 1;
    if (isLast ? dim.value() > limit.value() : dim.value() != 1 && dim.value() != limit.value()) {
      ctx.error = "attn_mask must broadcast to [" + d.batch.str() + ", " + d.qHeads.str() + ", " +
                  d.queries.str() + ", " + total.str() + "], found " + mask.str();
      return false;
    }
  }
  return true;
}

bool checkSoftmaxPrecision(InferContext &ctx) {
  int64_t code = ctx.attrs.i("softmax_precision", int64_t(DType::F32));
  if (code >= 0 && code < kDTypeCount && isPlainFloat(DType(code)))
    return true;
  ctx.error = "attribute softmax_precision must be 1, 10, 11 or 16, found " + std::to_string(code);
  return false;
}

void setResult(InferContext &ctx, size_t i, DType type, std::vector<Dim> dims) {
  if (i < ctx.out.size())
    ctx.out[i] = TensorInfo::make(type, std::move(dims));
}

} // namespace

InferStatus inferAttention(InferContext &ctx) {
  AttentionDims d;
  int rank;
  if (!checkCounts(ctx, 3, 7, 1, 4) || !expectFloat(ctx, 0) || !expectSameType(ctx, 1, 0) ||
      !expectFloat(ctx, 2) || !expectNumber(ctx, 3) || !expectSameType(ctx, 4, 0) ||
      !expectSameType(ctx, 5, 2) || !commonRank(ctx, rank) || !expectRank(ctx, 4, 4) ||
      !expectRank(ctx, 5, 4) || !checkType(ctx, 6, DType::I64) || !expectRank(ctx, 6, 1) ||
      !checkSoftmaxPrecision(ctx) || !attrInRange(ctx, "qk_matmul_output_mode", 0, 0, 3) ||
      !attrInRange(ctx, "left_window_size", -1, -1, INT64_MAX) ||
      !attrInRange(ctx, "right_window_size", -1, -1, INT64_MAX))
    return InferStatus::Error;
  if (std::string_view rows = ctx.attrs.s("hidden_rows", "zero"); rows != "zero" && rows != "nan")
    return ctx.fail("attribute hidden_rows must be zero or nan, found " + std::string(rows));
  if (std::string_view how = ctx.attrs.s("arithmetic", "f32"); how != "f32" && how != "bf16" && how != "")
    return ctx.fail("attribute arithmetic must be f32 or bf16, found " + std::string(how));
  if (ctx.has(4) != ctx.has(5))
    return ctx.fail("past_key and past_value must be given together");
  if (ctx.has(6) && ctx.has(4))
    return ctx.fail("nonpad_kv_seqlen cannot be combined with past_key and past_value");
  if ((rank == 3 && !readRank3(ctx, d)) || (rank == 4 && !readRank4(ctx, d)) || !checkHeads(ctx, d))
    return InferStatus::Error;

  Dim past(0), total = d.keys;
  if (ctx.has(4)) {
    past = Dim();
    if (!expectDim(ctx, 4, 0, d.batch) || !expectDim(ctx, 5, 0, d.batch) ||
        !expectDim(ctx, 4, 1, d.kvHeads) || !expectDim(ctx, 5, 1, d.kvHeads) || !expectDim(ctx, 4, 2, past) ||
        !expectDim(ctx, 5, 2, past) || !expectDim(ctx, 4, 3, d.headSize) ||
        !expectDim(ctx, 5, 3, d.valueSize))
      return InferStatus::Error;
    total = past + d.keys;
  }
  if (!expectDim(ctx, 6, 0, d.batch) || !checkMask(ctx, d, total))
    return InferStatus::Error;

  DType type = ctx.in[0].type, valueType = ctx.in[2].type;
  ctx.out[0].type = type;
  if (rank == 3)
    setResult(ctx, 0, type, {d.batch, d.queries, d.qHeads * d.valueSize});
  else if (rank == 4)
    setResult(ctx, 0, type, {d.batch, d.qHeads, d.queries, d.valueSize});
  setResult(ctx, 1, type, {d.batch, d.kvHeads, total, d.headSize});
  setResult(ctx, 2, valueType, {d.batch, d.kvHeads, total, d.valueSize});
  setResult(ctx, 3, type, {d.batch, d.qHeads, d.queries, total});
  return InferStatus::Ok;
}

InferStatus inferFlexAttention(InferContext &ctx) {
  AttentionDims d;
  if (!checkCounts(ctx, 3, 3, 1, 1) || !expectFloat(ctx, 0) || !expectSameType(ctx, 1, 0) ||
      !expectSameType(ctx, 2, 0) || !expectRank(ctx, 0, 4) || !expectRank(ctx, 1, 4) ||
      !expectRank(ctx, 2, 4) || !checkSoftmaxPrecision(ctx) || !readRank4(ctx, d) || !checkHeads(ctx, d))
    return InferStatus::Error;
  setResult(ctx, 0, ctx.in[0].type, {d.batch, d.qHeads, d.queries, d.valueSize});
  return InferStatus::Ok;
}

std::span<const OpEntry> attentionOps() {
  static constexpr OpEntry kOps[] = {
      {"attention", inferAttention},
      {"flex_attention", inferFlexAttention},
      {"paged_attention", inferPagedAttention},
      {.name = "paged_cache_write", .infer = inferPagedCacheWrite, .inPlace = 1, .inPlaceSecond = 1 << 5},
      {"rotary_embedding", inferRotaryEmbedding},
      {"linear_attention", inferLinearAttention},
      {"causal_conv_with_state", inferCausalConv},
      {"swiglu", inferSwiglu, 0b11},
  };
  return kOps;
}

} // namespace dspark
