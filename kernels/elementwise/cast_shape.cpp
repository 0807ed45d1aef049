// Shape functions of cast, bitcast and clip, whose results have the dims of their first operand.
#include "kernels/common/expect.h"
#include "kernels/elementwise/contents.h"
#include "kernels/elementwise/elementwise.h"
#include <algorithm>

namespace dspark {
namespace {

bool isCastable(DType type) { return dtypeBits(type) > 0 && type != DType::C64 && type != DType::C128; }
/// Types with a text form that casts from and to strings read and write.
bool hasText(DType type) { return isPlainNumber(type) || type == DType::String; }

/// Attribute `to`, Undefined with ctx.error set if it is no type that `allowed` accepts.
DType targetType(InferContext &ctx, bool (*allowed)(DType)) {
  int64_t code = ctx.attrs.i("to", 0);
  if (code > 0 && code < kDTypeCount && allowed(DType(code)))
    return DType(code);
  ctx.error = "attribute to must be a numeric element type, found " + std::to_string(code);
  return DType::Undefined;
}

void sameDims(InferContext &ctx, DType type) {
  ctx.out[0].type = type;
  ctx.out[0].hasRank = ctx.in[0].hasRank;
  ctx.out[0].dims = ctx.in[0].dims;
}

void foldCast(const TensorInfo &x, TensorInfo &y) {
  y.hasContents = true;
  for (double value : x.floats) {
    if (isFloat(y.type))
      y.floats.push_back(roundToType(y.type, value));
    else if (y.type == DType::Bool)
      y.ints.push_back(Dim(int64_t(value != 0)));
    else
      dispatchNumber(y.type, [&]<typename T>() {
        if constexpr (std::is_integral_v<T>)
          y.ints.push_back(Dim(int64_t(truncateTo<T>(value))));
      });
  }
  for (Dim value : x.ints) {
    if (isFloat(y.type))
      y.floats.push_back(roundToType(y.type, double(value.value())));
    else
      y.ints.push_back(castDim(value, x.type, y.type));
  }
}

} // namespace

InferStatus inferCast(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1) || !expectType(ctx, 0, isCastable, "a real numeric or string"))
    return InferStatus::Error;
  DType to = targetType(ctx, isCastable);
  std::string_view round = ctx.attrs.s("round_mode", "up");
  if (to != DType::Undefined && round != "up" && round != "down" && round != "nearest")
    ctx.error = "attribute round_mode must be up, down or nearest, found '" + std::string(round) + "'";
  bool isText = to == DType::String || ctx.in[0].type == DType::String;
  if (ctx.error.empty() && isText && !(hasText(to) && hasText(ctx.in[0].type)))
    ctx.error = "strings are cast from and to plain numbers only, found " + ctx.in[0].str() + " to " +
                std::string(dtypeName(to));
  if (!ctx.error.empty())
    return InferStatus::Error;
  sameDims(ctx, to);
  const TensorInfo &x = ctx.in[0];
  bool allNumbers = std::all_of(x.ints.begin(), x.ints.end(), [](Dim dim) { return dim.isConst(); });
  if (canFold(ctx) && isPlainNumber(x.type) && isPlainNumber(to) && x.type != DType::U64 &&
      (allNumbers || !isFloat(to)))
    foldCast(x, ctx.out[0]);
  return InferStatus::Ok;
}

InferStatus inferBitcast(InferContext &ctx) {
  auto hasBits = [](DType type) { return dtypeBits(type) > 0; };
  if (!checkCounts(ctx, 1, 1, 1, 1) || !expectType(ctx, 0, hasBits, "a numeric"))
    return InferStatus::Error;
  DType to = targetType(ctx, hasBits);
  if (to != DType::Undefined && dtypeBits(to) != dtypeBits(ctx.in[0].type))
    ctx.error = "a bitcast keeps the width of elements: expected a type of " +
                std::to_string(dtypeBits(ctx.in[0].type)) + " bits, found " + std::string(dtypeName(to));
  if (!ctx.error.empty())
    return InferStatus::Error;
  sameDims(ctx, to);
  return InferStatus::Ok;
}

InferStatus inferClip(InferContext &ctx) {
  auto isNumber = [](DType type) { return isPlainNumber(type) && type != DType::Bool; };
  if (!checkCounts(ctx, 1, 3, 1, 1) || !expectType(ctx, 0, isNumber, "a numeric"))
    return InferStatus::Error;
  for (size_t bound : {1, 2})
    if (!expectSameType(ctx, 0, bound) || !expectScalar(ctx, bound))
      return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  sameDims(ctx, x.type);
  if (!canFold(ctx))
    return InferStatus::Ok;
  TensorInfo &y = ctx.out[0];
  y.hasContents = true;
  for (double value : x.floats) {
    if (ctx.has(1) && value < ctx.in[1].floats[0])
      value = ctx.in[1].floats[0];
    if (ctx.has(2) && value > ctx.in[2].floats[0])
      value = ctx.in[2].floats[0];
    y.floats.push_back(value);
  }
  for (Dim value : x.ints) {
    if (ctx.has(1))
      value = binaryDim(BinaryKind::k_max, value, ctx.in[1].ints[0], x.type);
    if (ctx.has(2))
      value = binaryDim(BinaryKind::k_min, value, ctx.in[2].ints[0], x.type);
    y.ints.push_back(value);
  }
  return InferStatus::Ok;
}

} // namespace dspark
