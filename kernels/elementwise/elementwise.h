// What the shape functions and the kernels of the elementwise family share.
#pragma once
#include "kernels/common/shape.h"
#include "kernels/elementwise/kinds.h"

namespace dspark {

struct UnaryParams {
  double alpha, beta;
};
/// The parameters of a unary operation: shrink's lambd and bias, isinf's detect_negative and detect_positive,
/// else alpha and beta (selu's gamma is beta).
UnaryParams unaryParams(const Attrs &attrs, UnaryKind kind);

InferStatus inferClip(InferContext &ctx);
InferStatus inferCast(InferContext &ctx);
InferStatus inferBitcast(InferContext &ctx);

} // namespace dspark
