// Shape functions of the operators around attention: rotary_embedding, linear_attention,
// causal_conv_with_state, swiglu.
#include "kernels/attention/attention.h"
#include "kernels/common/expect.h"

namespace dspark {
namespace {

constexpr int64_t kMaxHeads = 1 << 20;

bool isMultiple(InferContext &ctx, size_t operand, int axis, int64_t divisor) {
  Dim dim = dimAt(ctx, operand, axis);
  if (!dim.isConst() || dim.value() % divisor == 0)
    return true;
  ctx.error = "dim " + std::to_string(axis) + " of operand " + std::to_string(operand) +
              " must be a multiple of " + std::to_string(divisor) + ", found " + ctx.in[operand].str();
  return false;
}

// The number of rotated elements of a head: the attribute, or the whole head.
bool rotatedSize(InferContext &ctx, Dim headSize, Dim &rotated) {
  std::optional<int64_t> attr = attrInRange(ctx, "rotary_embedding_dim", 0, 0, int64_t(1) << 40);
  if (!attr)
    return false;
  rotated = *attr == 0 ? headSize : Dim(*attr);
  if (rotated.isConst() &&
      (rotated.value() % 2 != 0 || (headSize.isConst() && rotated.value() > headSize.value()))) {
    ctx.error = "the rotated size must be even and at most the head size " + headSize.str() + ", found " +
                rotated.str();
    return false;
  }
  return true;
}

} // namespace

// X [B,H,S,D] | [B,S,H*D], cos and sin [P,R/2] with position_ids i64[B,S], or [B,S,R/2] without -> like X
InferStatus inferRotaryEmbedding(InferContext &ctx) {
  if (!checkCounts(ctx, 3, 4, 1, 1) || !expectFloat(ctx, 0) || !expectSameType(ctx, 1, 0) ||
      !expectSameType(ctx, 2, 0) || !checkType(ctx, 3, DType::I64) || !expectRank(ctx, 0, 3, 4) ||
      !expectRank(ctx, 3, 2))
    return InferStatus::Error;
  ctx.out[0].type = ctx.in[0].type;
  bool hasIds = ctx.has(3);
  int cacheRank = hasIds ? 2 : 3;
  if (!expectRank(ctx, 1, cacheRank) || !expectRank(ctx, 2, cacheRank))
    return InferStatus::Error;
  if (!ctx.in[0].hasRank)
    return InferStatus::Ok;

  bool isPacked = ctx.in[0].rank() == 3;
  Dim batch = dimAt(ctx, 0, 0), tokens = dimAt(ctx, 0, isPacked ? 1 : 2), headSize = dimAt(ctx, 0, 3);
  if (isPacked) {
    std::optional<int64_t> heads = attrInRange(ctx, "num_heads", 0, 1, kMaxHeads);
    if (!heads || !isMultiple(ctx, 0, 2, *heads))
      return InferStatus::Error;
    headSize = floorDiv(dimAt(ctx, 0, 2), Dim(*heads));
  }
  Dim rotated, positions;
  if (!rotatedSize(ctx, headSize, rotated))
    return InferStatus::Error;
  Dim half = floorDiv(rotated, Dim(2));
  bool fits = expectDim(ctx, 1, cacheRank - 1, half) && expectDim(ctx, 2, cacheRank - 1, half);
  if (hasIds)
    fits = fits && expectDim(ctx, 3, 0, batch) && expectDim(ctx, 3, 1, tokens) &&
           expectDim(ctx, 1, 0, positions) && expectDim(ctx, 2, 0, positions);
  else
    for (size_t cache : {1, 2})
      fits = fits && expectDim(ctx, cache, 0, batch) && expectDim(ctx, cache, 1, tokens);
  if (!fits)
    return InferStatus::Error;
  ctx.out[0] = TensorInfo::make(ctx.in[0].type, ctx.in[0].dims);
  return InferStatus::Ok;
}

// query [B,T,Hq*Dk], key [B,T,Hkv*Dk], value [B,T,Hkv*Dv], past_state? [B,Hkv,Dk,Dv], decay? [B,T,Hkv |
// Hkv*Dk], beta? [B,T,Hkv | 1] -> output [B,T,Hq*Dv], present_state [B,Hkv,Dk,Dv]
InferStatus inferLinearAttention(InferContext &ctx) {
  if (!checkCounts(ctx, 3, 6, 1, 2) || !expectFloat(ctx, 0) || !expectSameType(ctx, 1, 0) ||
      !expectSameType(ctx, 2, 0) || !expectFloat(ctx, 3) || !expectSameType(ctx, 4, 0) ||
      !expectSameType(ctx, 5, 0) || !expectRank(ctx, 3, 4))
    return InferStatus::Error;
  for (size_t i : {0, 1, 2, 4, 5})
    if (!expectRank(ctx, i, 3))
      return InferStatus::Error;
  UpdateRule rule = updateRule(ctx.attrs);
  if (!rule.known)
    return ctx.fail("attribute update_rule must be linear, gated, delta or gated_delta, found " +
                    std::string(ctx.attrs.s("update_rule", "")));
  if (rule.gated != ctx.has(4) || rule.delta != ctx.has(5))
    return ctx.fail("decay is given exactly with the gated rules, beta exactly with the delta rules");
  std::optional<int64_t> qHeads = attrInRange(ctx, "q_num_heads", 0, 1, kMaxHeads);
  std::optional<int64_t> kvHeads = qHeads ? attrInRange(ctx, "kv_num_heads", 0, 1, kMaxHeads) : std::nullopt;
  if (!kvHeads)
    return InferStatus::Error;
  if (*qHeads % *kvHeads != 0)
    return ctx.fail("q_num_heads must be a multiple of kv_num_heads, found " + std::to_string(*qHeads) +
                    " and " + std::to_string(*kvHeads));
  if (!isMultiple(ctx, 0, 2, *qHeads) || !isMultiple(ctx, 1, 2, *kvHeads) || !isMultiple(ctx, 2, 2, *kvHeads))
    return InferStatus::Error;

  Dim batch, tokens, keySize = floorDiv(dimAt(ctx, 0, 2), Dim(*qHeads)),
                     valueSize = floorDiv(dimAt(ctx, 2, 2), Dim(*kvHeads));
  for (size_t i : {0, 1, 2, 4, 5})
    if (!expectDim(ctx, i, 0, batch) || !expectDim(ctx, i, 1, tokens))
      return InferStatus::Error;
  Dim keyHidden = keySize * Dim(*kvHeads);
  if (!expectDim(ctx, 1, 2, keyHidden) || !expectDim(ctx, 3, 0, batch) || !expectSize(ctx, 3, 1, *kvHeads) ||
      !expectDim(ctx, 3, 2, keySize) || !expectDim(ctx, 3, 3, valueSize))
    return InferStatus::Error;
  Dim decay = dimAt(ctx, 4, 2), beta = dimAt(ctx, 5, 2);
  if (decay.isConst() && keyHidden.isConst() && !decay.is(*kvHeads) && decay.value() != keyHidden.value())
    return ctx.fail("the last dim of decay must be " + std::to_string(*kvHeads) + " or " + keyHidden.str() +
                    ", found " + decay.str());
  if (beta.isConst() && !beta.is(1) && !beta.is(*kvHeads))
    return ctx.fail("the last dim of beta must be 1 or " + std::to_string(*kvHeads) + ", found " +
                    beta.str());

  ctx.out[0] = TensorInfo::make(ctx.in[0].type, {batch, tokens, Dim(*qHeads) * valueSize});
  if (ctx.out.size() > 1)
    ctx.out[1] = TensorInfo::make(ctx.has(3) ? ctx.in[3].type : ctx.in[0].type,
                                  {batch, Dim(*kvHeads), keySize, valueSize});
  return InferStatus::Ok;
}

// input [B,C,L], weight [C,1,k], bias? [C], past_state? [B,C,k-1] -> output [B,C,L], present_state [B,C,k-1]
InferStatus inferCausalConv(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 4, 1, 2) || !expectFloat(ctx, 0) || !expectRank(ctx, 0, 3) ||
      !expectRank(ctx, 1, 3) || !expectRank(ctx, 2, 1) || !expectRank(ctx, 3, 3))
    return InferStatus::Error;
  for (size_t i : {1, 2, 3})
    if (!expectSameType(ctx, i, 0))
      return InferStatus::Error;
  std::string_view activation = ctx.attrs.s("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return ctx.fail("attribute activation must be none, silu or swish, found " + std::string(activation));
  Dim batch, channels, length = dimAt(ctx, 0, 2), taps = dimAt(ctx, 1, 2), state = taps - Dim(1);
  if (!expectDim(ctx, 0, 0, batch) || !expectDim(ctx, 3, 0, batch) || !expectDim(ctx, 0, 1, channels) ||
      !expectDim(ctx, 1, 0, channels) || !expectDim(ctx, 2, 0, channels) || !expectDim(ctx, 3, 1, channels) ||
      !expectSize(ctx, 1, 1, 1) || !expectDim(ctx, 3, 2, state))
    return InferStatus::Error;
  if (state.isConst() && state.value() < 0)
    return ctx.fail("the kernel must have at least one tap, found weight " + ctx.in[1].str());
  ctx.out[0] = TensorInfo::make(ctx.in[0].type, {batch, channels, length});
  if (ctx.out.size() > 1)
    ctx.out[1] = TensorInfo::make(ctx.in[0].type, {batch, channels, state});
  return InferStatus::Ok;
}

// A and B of one shape -> swish(A) * B
InferStatus inferSwiglu(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1) || !expectFloat(ctx, 0) || !expectSameType(ctx, 1, 0))
    return InferStatus::Error;
  ctx.out[0].type = ctx.in[0].type;
  const TensorInfo &ranked = ctx.in[0].hasRank ? ctx.in[0] : ctx.in[1];
  if (!ranked.hasRank)
    return InferStatus::Ok;
  if (!expectRank(ctx, 1, ranked.rank()))
    return InferStatus::Error;
  std::vector<Dim> dims = ranked.dims;
  for (int i = 0; i < ranked.rank(); ++i)
    if (!expectDim(ctx, 1, i, dims[size_t(i)]))
      return InferStatus::Error;
  ctx.out[0] = TensorInfo::make(ctx.in[0].type, std::move(dims));
  return InferStatus::Ok;
}

} // namespace dspark
