#include "kernels/elementwise/contents.h"
#include "kernels/elementwise/scalar.h"
#include <algorithm>

namespace dspark {
namespace {

/// f<T>() with the C++ type of an integer or bool tensor; unknown for packed types.
template <typename F> Dim withInteger(DType type, F f) {
  Dim result;
  dispatchNumber(type, [&]<typename T>() {
    if constexpr (std::is_integral_v<T>)
      result = Dim(int64_t(f.template operator()<T>()));
  });
  return result;
}

/// Expressions stand for indices and sizes, which are far from the limits of these types.
bool holdsExpressions(DType type) { return type == DType::I64 || type == DType::I32; }

std::optional<int64_t> combine(DimOp op, std::optional<int64_t> a, std::optional<int64_t> b) {
  return a && b ? evaluateDimOp(op, *a, *b) : std::nullopt;
}

std::optional<int64_t> lowerBound(Dim dim, int &budget) {
  if (dim.isConst())
    return dim.value();
  if (dim.isUnknown() || --budget < 0)
    return std::nullopt;
  const DimNode *node = dim.node();
  if (node->op == DimOp::Symbol)
    return 0;
  std::optional<int64_t> a = lowerBound(Dim(node->lhs), budget), b = lowerBound(Dim(node->rhs), budget);
  switch (node->op) {
  case DimOp::Max:
    return a && b ? std::max(a, b) : a ? a : b;
  case DimOp::Mod:
    return b && *b >= 0 ? std::optional<int64_t>(0) : std::nullopt;
  case DimOp::Broadcast:
    return combine(DimOp::Min, a, b);
  case DimOp::Mul:
    return a && b && *a >= 0 && *b >= 0 ? combine(DimOp::Mul, a, b) : std::nullopt;
  case DimOp::FloorDiv:
  case DimOp::CeilDiv:
    if (node->rhs->op == DimOp::Const && node->rhs->value > 0)
      return combine(node->op, a, node->rhs->value);
    return a && b && *a >= 0 && *b >= 0 ? std::optional<int64_t>(0) : std::nullopt;
  default:
    return combine(node->op, a, b);
  }
}

Dim symbolicBinary(BinaryKind kind, Dim a, Dim b) {
  bool positive = isNonNegative(a) && isNonNegative(b) && !b.is(0);
  switch (kind) {
  case BinaryKind::k_add:
    return a + b;
  case BinaryKind::k_sub:
    return a - b;
  case BinaryKind::k_mul:
    return a * b;
  case BinaryKind::k_min:
    return min(a, b);
  case BinaryKind::k_max:
    return max(a, b);
  case BinaryKind::k_div: {
    // Truncation is flooring unless the quotient is negative and inexact.
    Dim exact = exactQuotient({&a, 1}, {&b, 1});
    return exact.isSymbolic() && (exact * b).provablyEqual(a) ? exact : positive ? floorDiv(a, b) : Dim();
  }
  case BinaryKind::k_mod:
    return b.isConst() && b.value() > 0 ? mod(a, b) : positive ? mod(a, b) : Dim();
  case BinaryKind::k_fmod:
    return positive ? mod(a, b) : Dim();
  default:
    return Dim();
  }
}

} // namespace

std::optional<int64_t> lowerBound(Dim dim) {
  int budget = 256;
  return lowerBound(dim, budget);
}

Dim unaryDim(UnaryKind kind, Dim x, DType type) {
  if (x.isConst())
    return withInteger(type, [&]<typename T>() { return unaryInteger<T>(kind, T(x.value()), 0, 0); });
  if (!x.isSymbolic() || !holdsExpressions(type))
    return Dim();
  switch (kind) {
  case UnaryKind::k_neg:
    return x * Dim(-1);
  case UnaryKind::k_abs:
    return isNonNegative(x) ? x : max(x, x * Dim(-1));
  case UnaryKind::k_relu:
    return clampToZero(x);
  case UnaryKind::k_sign:
    return lowerBound(x).value_or(0) > 0 ? Dim(1) : Dim();
  default:
    return Dim();
  }
}

Dim binaryDim(BinaryKind kind, Dim a, Dim b, DType type) {
  if (a.isConst() && b.isConst())
    return withInteger(type,
                       [&]<typename T>() { return binaryInteger<T>(kind, T(a.value()), T(b.value())); });
  // One operand can decide a logical operation.
  if (kind == BinaryKind::k_and && (a.is(0) || b.is(0)))
    return Dim(0);
  if (kind == BinaryKind::k_or && (a.is(1) || b.is(1)))
    return Dim(1);
  if (a.isUnknown() || b.isUnknown() || !holdsExpressions(type))
    return Dim();
  return symbolicBinary(kind, a, b);
}

Dim compareDim(CompareKind kind, Dim a, Dim b, DType type) {
  if (a.isConst() && b.isConst())
    return withInteger(type,
                       [&]<typename T>() { return compareValues<T>(kind, T(a.value()), T(b.value())); });
  if (a.isUnknown() || b.isUnknown())
    return Dim();
  Dim difference = a - b;
  if (difference.isConst())
    return Dim(int64_t(compareValues<int64_t>(kind, difference.value(), 0)));
  int64_t above = lowerBound(difference).value_or(INT64_MIN), below = lowerBound(b - a).value_or(INT64_MIN);
  switch (kind) {
  case CompareKind::k_eq:
    return above > 0 || below > 0 ? Dim(0) : Dim();
  case CompareKind::k_lt:
    return below > 0 ? Dim(1) : above >= 0 ? Dim(0) : Dim();
  case CompareKind::k_le:
    return below >= 0 ? Dim(1) : above > 0 ? Dim(0) : Dim();
  case CompareKind::k_gt:
    return above > 0 ? Dim(1) : below >= 0 ? Dim(0) : Dim();
  case CompareKind::k_ge:
    return above >= 0 ? Dim(1) : below > 0 ? Dim(0) : Dim();
  case CompareKind::kCount:
    break;
  }
  return Dim();
}

Dim castDim(Dim x, DType from, DType to) {
  if (to == DType::Bool) {
    Dim isZero = compareDim(CompareKind::k_eq, x, Dim(0), DType::I64);
    return isZero.isConst() ? Dim(int64_t(isZero.is(0))) : Dim();
  }
  if (x.isConst())
    return withInteger(to, [&]<typename T>() { return T(x.value()); });
  return holdsExpressions(from) && holdsExpressions(to) ? x : Dim();
}

double roundToType(DType type, double value) {
  if (type == DType::F64)
    return value;
  if (type == DType::F32)
    return float(value);
  SmallFloat format = smallFloat(type);
  return decodeSmall(format, encodeSmall(format, value, false));
}

BroadcastIndex::BroadcastIndex(const TensorInfo &operand, const TensorInfo &result) {
  std::vector<int64_t> own = stridesOf(operand.dims);
  size_t offset = result.dims.size() - operand.dims.size();
  strides.assign(result.dims.size(), 0);
  for (size_t i = 0; i < result.dims.size(); ++i) {
    dims.push_back(result.dims[i].value());
    if (i >= offset && !operand.dims[i - offset].is(1))
      strides[i] = own[i - offset];
  }
}

size_t BroadcastIndex::at(int64_t k) const {
  int64_t index = 0;
  for (size_t i = dims.size(); i-- > 0; k /= dims[i])
    index += k % dims[i] * strides[i];
  return size_t(index);
}

bool canFold(const InferContext &ctx) {
  int64_t count = knownElements(ctx.out[0]);
  if (count < 0 || count > kMaxKnownElements)
    return false;
  return std::all_of(ctx.in.begin(), ctx.in.end(),
                     [](const TensorInfo &info) { return !info.present() || contentsFit(info); });
}

} // namespace dspark
