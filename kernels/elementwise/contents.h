// Elementwise operations on dims: how the contents of small integer tensors (shapes, indices, conditions)
// pass through them, so that shape arithmetic folds to expressions. A result that is not certain is unknown.
#pragma once
#include "kernels/common/infer.h"
#include "kernels/elementwise/kinds.h"

namespace dspark {

/// `type` is the integer type (or bool) of the operands; numbers wrap around in it.
Dim unaryDim(UnaryKind kind, Dim x, DType type);
Dim binaryDim(BinaryKind kind, Dim a, Dim b, DType type);
/// 1, 0 or unknown.
Dim compareDim(CompareKind kind, Dim a, Dim b, DType type);
/// An entry of a tensor of type `from` cast to `to`, both integer or bool.
Dim castDim(Dim x, DType from, DType to);

/// The floating-point number of type `type` nearest to `value`.
double roundToType(DType type, double value);

/// A bound that `dim` certainly reaches, given that symbols are >= 0; nullopt if there is none.
std::optional<int64_t> lowerBound(Dim dim);

/// Where element k of a broadcast result lies in an operand; all dims are numbers.
class BroadcastIndex {
public:
  BroadcastIndex(const TensorInfo &operand, const TensorInfo &result);
  size_t at(int64_t k) const;

private:
  std::vector<int64_t> dims, strides;
};

/// True if contents of result 0 can be computed: every present operand has them, and the result is small.
bool canFold(const InferContext &ctx);

} // namespace dspark
