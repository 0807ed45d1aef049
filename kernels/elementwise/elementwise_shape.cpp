// Shape functions of unary, binary, compare and select. All broadcast as numpy does.
#include "kernels/common/expect.h"
#include "kernels/common/families.h"
#include "kernels/elementwise/contents.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/scalar.h"

namespace dspark {
namespace {

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

/// The kind that attribute `kind` names, or kCount with ctx.error set.
template <typename Kind> Kind kindOf(InferContext &ctx, Kind (*find)(std::string_view)) {
  std::string_view name = ctx.attrs.s("kind", "");
  Kind kind = find(name);
  if (kind == Kind::kCount)
    ctx.error = "unknown kind " + quoted(name);
  return kind;
}

bool expectTaken(InferContext &ctx, size_t i, bool taken, std::string_view kind) {
  if (!taken)
    ctx.error = std::string(kind) + " does not take operand " + std::to_string(i) + " of type " +
                std::string(dtypeName(ctx.in[i].type));
  return taken;
}

/// The result's dims from those of all operands.
bool broadcastAll(InferContext &ctx, DType type) {
  ctx.out[0].type = type;
  return broadcastDims(ctx, ctx.in, ctx.out[0]) && checkRank(ctx, ctx.out[0].dims.size());
}

InferStatus inferUnary(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1))
    return InferStatus::Error;
  UnaryKind kind = kindOf(ctx, unaryKind);
  const TensorInfo &x = ctx.in[0];
  if (kind == UnaryKind::kCount || !expectTaken(ctx, 0, unaryTakes(kind, x.type), kindName(kind)) ||
      !broadcastAll(ctx, isPredicate(kind) ? DType::Bool : x.type))
    return InferStatus::Error;
  if (!canFold(ctx))
    return InferStatus::Ok;
  UnaryParams p = unaryParams(ctx.attrs, kind);
  TensorInfo &y = ctx.out[0];
  y.hasContents = true;
  for (double value : x.floats) {
    double result = unaryValue(kind, value, p.alpha, p.beta);
    if (isPredicate(kind))
      y.ints.push_back(Dim(int64_t(result)));
    else
      y.floats.push_back(roundToType(y.type, result));
  }
  for (Dim value : x.ints)
    y.ints.push_back(unaryDim(kind, value, x.type));
  return InferStatus::Ok;
}

InferStatus inferBinary(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1))
    return InferStatus::Error;
  BinaryKind kind = kindOf(ctx, binaryKind);
  if (kind == BinaryKind::kCount)
    return InferStatus::Error;
  const TensorInfo &a = ctx.in[0], &b = ctx.in[1];
  if (!expectTaken(ctx, 0, binaryTakes(kind, a.type), kindName(kind)) ||
      !expectTaken(ctx, 1, binaryTakes(kind, b.type), kindName(kind)) ||
      (kind != BinaryKind::k_pow && !expectSameType(ctx, 0, 1)) || !broadcastAll(ctx, a.type))
    return InferStatus::Error;
  if (!canFold(ctx) || a.type != b.type)
    return InferStatus::Ok;
  BroadcastIndex fromA(a, ctx.out[0]), fromB(b, ctx.out[0]);
  TensorInfo &y = ctx.out[0];
  y.hasContents = true;
  for (int64_t k = 0, n = knownElements(y); k < n; ++k) {
    size_t i = fromA.at(k), j = fromB.at(k);
    if (isFloat(a.type))
      y.floats.push_back(roundToType(y.type, binaryValue(kind, a.floats[i], b.floats[j])));
    else
      y.ints.push_back(binaryDim(kind, a.ints[i], b.ints[j], a.type));
  }
  return InferStatus::Ok;
}

InferStatus inferCompare(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1))
    return InferStatus::Error;
  CompareKind kind = kindOf(ctx, compareKind);
  auto isComparable = [](DType type) { return isPlainNumber(type) || type == DType::String; };
  if (kind == CompareKind::kCount || !expectType(ctx, 0, isComparable, "a numeric or string") ||
      !expectSameType(ctx, 0, 1) || !broadcastAll(ctx, DType::Bool))
    return InferStatus::Error;
  if (ctx.in[0].type == DType::String && kind != CompareKind::k_eq)
    return ctx.fail("strings are compared for equality only, found kind " + quoted(kindName(kind)));
  if (!canFold(ctx) || ctx.in[0].type == DType::String)
    return InferStatus::Ok;
  const TensorInfo &a = ctx.in[0], &b = ctx.in[1];
  BroadcastIndex fromA(a, ctx.out[0]), fromB(b, ctx.out[0]);
  TensorInfo &y = ctx.out[0];
  y.hasContents = true;
  for (int64_t k = 0, n = knownElements(y); k < n; ++k) {
    size_t i = fromA.at(k), j = fromB.at(k);
    y.ints.push_back(isFloat(a.type) ? Dim(int64_t(compareValues(kind, a.floats[i], b.floats[j])))
                                     : compareDim(kind, a.ints[i], b.ints[j], a.type));
  }
  return InferStatus::Ok;
}

/// The entry chosen by a condition that may be unknown.
Dim choose(Dim condition, Dim a, Dim b) {
  if (condition.isConst())
    return condition.is(0) ? b : a;
  return a.provablyEqual(b) ? a : Dim();
}

void foldSelect(InferContext &ctx) {
  const TensorInfo &condition = ctx.in[0], &a = ctx.in[1], &b = ctx.in[2];
  BroadcastIndex fromC(condition, ctx.out[0]), fromA(a, ctx.out[0]), fromB(b, ctx.out[0]);
  TensorInfo &y = ctx.out[0];
  int64_t count = knownElements(y);
  if (!isFloat(y.type)) {
    for (int64_t k = 0; k < count; ++k)
      y.ints.push_back(choose(condition.ints[fromC.at(k)], a.ints[fromA.at(k)], b.ints[fromB.at(k)]));
    y.hasContents = true;
  } else if (constInts(ctx, 0)) {
    for (int64_t k = 0; k < count; ++k)
      y.floats.push_back(condition.ints[fromC.at(k)].is(0) ? b.floats[fromB.at(k)] : a.floats[fromA.at(k)]);
    y.hasContents = true;
  }
}

InferStatus inferSelect(InferContext &ctx) {
  auto wholeBytes = [](DType type) { return dtypeBits(type) >= 8; };
  if (!checkCounts(ctx, 3, 3, 1, 1) || !checkType(ctx, 0, DType::Bool) ||
      !expectType(ctx, 1, wholeBytes, "a numeric or string") || !expectSameType(ctx, 1, 2) ||
      !broadcastAll(ctx, ctx.in[1].type))
    return InferStatus::Error;
  if (canFold(ctx))
    foldSelect(ctx);
  return InferStatus::Ok;
}

} // namespace

UnaryParams unaryParams(const Attrs &attrs, UnaryKind kind) {
  UnaryDefaults otherwise = unaryDefaults(kind);
  if (kind == UnaryKind::k_isinf)
    return {double(attrs.i("detect_negative", 1) != 0), double(attrs.i("detect_positive", 1) != 0)};
  if (kind == UnaryKind::k_shrink)
    return {attrs.f("lambd", attrs.f("alpha", otherwise.alpha)),
            attrs.f("bias", attrs.f("beta", otherwise.beta))};
  if (kind == UnaryKind::k_selu)
    return {attrs.f("alpha", otherwise.alpha), attrs.f("beta", attrs.f("gamma", otherwise.beta))};
  return {attrs.f("alpha", otherwise.alpha), attrs.f("beta", otherwise.beta)};
}

std::span<const OpEntry> elementwiseOps() {
  // compare has no in-place operand: its result can have the byte size of an operand that is broadcast.
  static const OpEntry entries[] = {
      {.name = "unary", .infer = inferUnary, .inPlace = 1},
      {.name = "binary", .infer = inferBinary, .inPlace = 3},
      {.name = "compare", .infer = inferCompare, .takesStrings = true},
      {.name = "select", .infer = inferSelect, .inPlace = 7, .takesStrings = true},
      {.name = "clip", .infer = inferClip, .inPlace = 1},
      {.name = "cast", .infer = inferCast, .inPlace = 1, .takesStrings = true},
      {.name = "bitcast", .infer = inferBitcast, .isView = true},
  };
  return entries;
}

} // namespace dspark
