// Checks of operands that shape functions share: element type, rank, and dims that must agree. Each returns
// false after setting ctx.error to a sentence that says what was expected and found. Unknown ranks and dims
// pass.
#pragma once
#include "kernels/common/element.h"
#include "kernels/common/infer.h"
#include <string>

namespace dspark {

/// Operand i is absent or has a type that `allowed` accepts; `what` names those types ("a floating-point").
inline bool expectType(InferContext &ctx, size_t i, bool (*allowed)(DType), const char *what) {
  if (!ctx.has(i) || allowed(ctx.in[i].type))
    return true;
  ctx.error = "operand " + std::to_string(i) + " must have " + what + " type, found " + ctx.in[i].str();
  return false;
}
inline bool expectFloat(InferContext &ctx, size_t i) {
  return expectType(ctx, i, isPlainFloat, "a floating-point");
}
inline bool expectNumber(InferContext &ctx, size_t i) {
  return expectType(ctx, i, isPlainNumber, "a numeric");
}
/// Operands i and j, if both present, have the same type.
inline bool expectSameType(InferContext &ctx, size_t i, size_t j) {
  return !ctx.has(j) || checkType(ctx, i, ctx.in[j].type);
}

/// Operand i is absent, or its rank is unknown or in [low, high].
inline bool expectRank(InferContext &ctx, size_t i, int low, int high) {
  if (!ctx.has(i) || !ctx.in[i].hasRank || (ctx.in[i].rank() >= low && ctx.in[i].rank() <= high))
    return true;
  std::string range = std::to_string(low) + (low == high ? "" : " to " + std::to_string(high));
  ctx.error = "operand " + std::to_string(i) + " must have rank " + range + ", found " + ctx.in[i].str();
  return false;
}
inline bool expectRank(InferContext &ctx, size_t i, int rank) { return expectRank(ctx, i, rank, rank); }

/// Operand i is absent or may have exactly one element: no dim is known to be other than 1.
inline bool expectScalar(InferContext &ctx, size_t i) {
  if (!ctx.has(i))
    return true;
  for (Dim dim : ctx.in[i].dims)
    if (dim.isConst() && !dim.is(1)) {
      ctx.error = "operand " + std::to_string(i) + " must have one element, found " + ctx.in[i].str();
      return false;
    }
  return true;
}

/// Dim `axis` of operand i, unknown if its rank is or if it has no such axis.
inline Dim dimAt(const InferContext &ctx, size_t i, int axis) {
  bool exists = ctx.has(i) && ctx.in[i].hasRank && axis >= 0 && axis < ctx.in[i].rank();
  return exists ? ctx.in[i].dims[size_t(axis)] : Dim();
}

/// Dim `axis` of operand i agrees with `dim`, which becomes the more precise of both.
inline bool expectDim(InferContext &ctx, size_t i, int axis, Dim &dim) {
  Dim found = dimAt(ctx, i, axis);
  if (std::optional<Dim> both = mergeDims(dim, found)) {
    dim = *both;
    return true;
  }
  ctx.error = "dim " + std::to_string(axis) + " of operand " + std::to_string(i) + " must be " + dim.str() +
              ", found " + ctx.in[i].str();
  return false;
}
/// The same for a fixed size.
inline bool expectSize(InferContext &ctx, size_t i, int axis, int64_t size) {
  Dim dim(size);
  return expectDim(ctx, i, axis, dim);
}

/// The attribute, which must be in [low, high].
inline std::optional<int64_t> attrInRange(InferContext &ctx, const char *name, int64_t otherwise, int64_t low,
                                          int64_t high) {
  int64_t value = ctx.attrs.i(name, otherwise);
  if (value >= low && value <= high)
    return value;
  ctx.error = "attribute " + std::string(name) + " must be in [" + std::to_string(low) + ", " +
              std::to_string(high) + "], found " + std::to_string(value);
  return std::nullopt;
}

} // namespace dspark
