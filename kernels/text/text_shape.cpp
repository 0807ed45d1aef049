// Shape functions of operators on strings. StringSplit is two operators here: string_split_sizes tells how
// many parts there are, and string_split is given the largest number as an operand whose contents it needs.
#include "kernels/common/expect.h"
#include "kernels/common/families.h"
#include "kernels/text/text.h"
#include <re2/re2.h>

namespace dspark {
namespace {

void setLike(TensorInfo &result, const TensorInfo &operand, DType type) {
  result.type = type;
  result.hasRank = operand.hasRank;
  result.dims = operand.dims;
}

InferStatus inferConcat(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1) || !checkType(ctx, 0, DType::String) || !checkType(ctx, 1, DType::String))
    return InferStatus::Error;
  ctx.out[0].type = DType::String;
  bool fits = broadcastDims(ctx, ctx.in, ctx.out[0]) && checkRank(ctx, ctx.out[0].dims.size());
  return fits ? InferStatus::Ok : InferStatus::Error;
}

// x -> the number of parts of each string, and the largest of them
InferStatus inferSplitSizes(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 2, 2) || !checkType(ctx, 0, DType::String))
    return InferStatus::Error;
  setLike(ctx.out[0], ctx.in[0], DType::I64);
  ctx.out[1] = TensorInfo::make(DType::I64, {});
  return InferStatus::Ok;
}

// x, width -> parts [..., width]
InferStatus inferSplit(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1) || !checkType(ctx, 0, DType::String) || !checkType(ctx, 1, DType::I64) ||
      !expectScalar(ctx, 1))
    return InferStatus::Error;
  setLike(ctx.out[0], ctx.in[0], DType::String);
  if (!ctx.in[0].hasRank)
    return InferStatus::Ok;
  if (!checkRank(ctx, ctx.in[0].dims.size() + 1))
    return InferStatus::Error;
  Dim width = scalarInt(ctx, 1);
  if (width.isConst() && width.value() < 0)
    return ctx.fail("the number of parts is " + width.str() + ", expected 0 or more");
  ctx.out[0].dims.push_back(width);
  return width.isUnknown() ? askForContents(ctx, 1) : InferStatus::Ok;
}

// x [C] or [1, C], stopwords [S]? -> what is left, or one empty string
InferStatus inferNormalize(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 2, 1, 1) || !checkType(ctx, 0, DType::String) ||
      !checkType(ctx, 1, DType::String) || !expectRank(ctx, 0, 1, 2) || !expectRank(ctx, 1, 1))
    return InferStatus::Error;
  std::string_view action = ctx.attrs.s("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    return ctx.fail("attribute case_change_action must be NONE, LOWER or UPPER, found '" +
                    std::string(action) + "'");
  if (ctx.in[0].hasRank && ctx.in[0].rank() == 2 && !expectSize(ctx, 0, 0, 1))
    return InferStatus::Error;
  ctx.dimsFromKernel = true;
  setLike(ctx.out[0], ctx.in[0], DType::String);
  if (ctx.out[0].hasRank)
    ctx.out[0].dims.back() = max(ctx.out[0].dims.back(), Dim(1));
  return InferStatus::Ok;
}

InferStatus inferFullMatch(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1) || !checkType(ctx, 0, DType::String))
    return InferStatus::Error;
  if (auto pattern = text::compiledPattern(ctx.attrs.s("pattern", "")); !pattern->ok())
    return ctx.fail("attribute pattern is no regular expression of RE2: " + pattern->error());
  setLike(ctx.out[0], ctx.in[0], DType::Bool);
  return InferStatus::Ok;
}

} // namespace

std::span<const OpEntry> textOps() {
  static constexpr OpEntry kOps[] = {
      {.name = "string_concat", .infer = inferConcat, .takesStrings = true},
      {.name = "string_split_sizes", .infer = inferSplitSizes, .takesStrings = true},
      {.name = "string_split", .infer = inferSplit, .takesStrings = true},
      {.name = "string_normalizer", .infer = inferNormalize, .takesStrings = true},
      {.name = "regex_full_match", .infer = inferFullMatch, .takesStrings = true},
  };
  return kOps;
}

} // namespace dspark
