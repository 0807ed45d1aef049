// The elementwise operations on one element: what the reference kernels compute, and how shape functions
// compute the contents of small tensors. Floats are computed in f64 by libm and rounded once by the caller.
#pragma once
#include "kernels/common/element.h"
#include "kernels/elementwise/kinds.h"
#include <type_traits>

namespace dspark {

/// A unary operation on a floating-point value. alpha and beta are the operation's parameters; for isinf they
/// say whether negative and positive infinities count.
double unaryValue(UnaryKind kind, double x, double alpha, double beta);
double binaryValue(BinaryKind kind, double a, double b);
/// The exponent of a power need not have the base's type. Powers of integers wrap around.
int64_t powInteger(int64_t base, double exponent);

/// Integers wrap around. Division truncates, and by zero gives 0, as the remainder then is.
template <typename T> T unaryInteger(UnaryKind kind, T x, double alpha, double beta) {
  using U = std::make_unsigned_t<T>;
  switch (kind) {
  case UnaryKind::k_abs:
    return x < 0 ? T(U(0) - U(x)) : x;
  case UnaryKind::k_neg:
    return T(U(0) - U(x));
  case UnaryKind::k_sign:
    return T((x > 0) - (x < 0));
  case UnaryKind::k_relu:
    return x < 0 ? T(0) : x;
  case UnaryKind::k_not:
    return T(x == 0);
  case UnaryKind::k_bitnot:
    return T(~x);
  default:
    return truncateTo<T>(unaryValue(kind, double(x), alpha, beta));
  }
}

template <typename T> T divideInteger(T a, T b) {
  if (b == 0)
    return 0;
  if (std::is_signed_v<T> && b == T(-1))
    return T(std::make_unsigned_t<T>(0) - std::make_unsigned_t<T>(a));
  return T(a / b);
}
template <typename T> T remainderInteger(T a, T b) {
  return b == 0 || (std::is_signed_v<T> && b == T(-1)) ? T(0) : T(a % b);
}
/// The remainder with the divisor's sign.
template <typename T> T modInteger(T a, T b) {
  T rest = remainderInteger(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? T(rest + b) : rest;
}
/// Bits shifted out are lost; what is shifted in on the right is the sign. Amounts outside [0, bits) shift
/// everything out.
template <typename T> T shiftLeft(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return U(b) < sizeof(T) * 8 ? T(uint64_t(U(a)) << U(b)) : T(0);
}
template <typename T> T shiftRight(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return U(b) < sizeof(T) * 8 ? T(a >> U(b)) : a < 0 ? T(-1) : T(0);
}

template <typename T> T binaryInteger(BinaryKind kind, T a, T b) {
  using U = std::make_unsigned_t<T>;
  // Products of narrow types are promoted to int, which u16 * u16 can overflow: multiply as 64 bits.
  switch (kind) {
  case BinaryKind::k_add:
    return T(U(a) + U(b));
  case BinaryKind::k_sub:
    return T(U(a) - U(b));
  case BinaryKind::k_mul:
    return T(uint64_t(U(a)) * uint64_t(U(b)));
  case BinaryKind::k_div:
    return divideInteger(a, b);
  case BinaryKind::k_pow:
    return T(powInteger(int64_t(a), double(b)));
  case BinaryKind::k_min:
    return a < b ? a : b;
  case BinaryKind::k_max:
    return a > b ? a : b;
  case BinaryKind::k_mod:
    return modInteger(a, b);
  case BinaryKind::k_fmod:
    return remainderInteger(a, b);
  case BinaryKind::k_and:
    return T(a != 0 && b != 0);
  case BinaryKind::k_or:
    return T(a != 0 || b != 0);
  case BinaryKind::k_xor:
    return T((a != 0) != (b != 0));
  case BinaryKind::k_bitand:
    return T(a & b);
  case BinaryKind::k_bitor:
    return T(a | b);
  case BinaryKind::k_bitxor:
    return T(a ^ b);
  case BinaryKind::k_shl:
    return shiftLeft(a, b);
  case BinaryKind::k_shr:
    return shiftRight(a, b);
  case BinaryKind::k_prelu:
    return a < 0 ? T(uint64_t(U(a)) * uint64_t(U(b))) : a;
  case BinaryKind::kCount:
    break;
  }
  return 0;
}

template <typename T> bool compareValues(CompareKind kind, T a, T b) {
  switch (kind) {
  case CompareKind::k_eq:
    return a == b;
  case CompareKind::k_lt:
    return a < b;
  case CompareKind::k_le:
    return a <= b;
  case CompareKind::k_gt:
    return a > b;
  case CompareKind::k_ge:
    return a >= b;
  case CompareKind::kCount:
    break;
  }
  return false;
}

// --- which element types a kind takes ---

/// Types a unary operation takes; false for everything else.
bool unaryTakes(UnaryKind kind, DType type);
/// Makes bool of any type it takes.
inline bool isPredicate(UnaryKind kind) {
  return kind == UnaryKind::k_not || kind == UnaryKind::k_isnan || kind == UnaryKind::k_isinf;
}
/// Types of the first operand, and of the second except for pow.
bool binaryTakes(BinaryKind kind, DType type);

} // namespace dspark
