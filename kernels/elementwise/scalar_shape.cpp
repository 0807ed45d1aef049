#include "kernels/elementwise/scalar.h"
#include <cmath>

namespace dspark {
namespace {

double sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
double softplus(double x) { return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::fabs(x))); }
double hardSigmoid(double x, double alpha, double beta) {
  double y = x * alpha + beta;
  return y < 0 ? 0 : y > 1 ? 1 : y;
}
double geluTanh(double x) {
  return x *
         sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)); // x/2 (1 + tanh u) = x sigmoid(2u)
}
double shrink(double x, double lambda, double bias) {
  return x < -lambda ? x + bias : x > lambda ? x - bias : 0;
}

} // namespace

double unaryValue(UnaryKind kind, double x, double alpha, double beta) {
  switch (kind) {
  case UnaryKind::k_abs:
    return std::fabs(x);
  case UnaryKind::k_neg:
    return -x;
  case UnaryKind::k_exp:
    return std::exp(x);
  case UnaryKind::k_log:
    return std::log(x);
  case UnaryKind::k_sqrt:
    return std::sqrt(x);
  case UnaryKind::k_rsqrt:
    return 1 / std::sqrt(x);
  case UnaryKind::k_reciprocal:
    return 1 / x;
  case UnaryKind::k_floor:
    return std::floor(x);
  case UnaryKind::k_ceil:
    return std::ceil(x);
  case UnaryKind::k_round:
    return std::nearbyint(x);
  case UnaryKind::k_sign:
    return std::isnan(x) ? x : (x > 0) - (x < 0);
  case UnaryKind::k_relu:
    return x < 0 ? 0 : x;
  case UnaryKind::k_leaky_relu:
    return x < 0 ? x * alpha : x;
  case UnaryKind::k_elu:
    return x > 0 ? x : alpha * std::expm1(x);
  case UnaryKind::k_selu:
    return beta * (x > 0 ? x : alpha * std::expm1(x));
  case UnaryKind::k_celu:
    return x > 0 ? x : alpha * std::expm1(x / alpha);
  case UnaryKind::k_thresholded_relu:
    return x > alpha ? x : 0;
  case UnaryKind::k_hard_sigmoid:
    return hardSigmoid(x, alpha, beta);
  case UnaryKind::k_hard_swish:
    return x * hardSigmoid(x, alpha, beta);
  case UnaryKind::k_sigmoid:
    return sigmoid(x);
  case UnaryKind::k_silu:
    return x * sigmoid(x);
  case UnaryKind::k_tanh:
    return std::tanh(x);
  case UnaryKind::k_erf:
    return std::erf(x);
  case UnaryKind::k_gelu:
    return x / 2 * std::erfc(-x * M_SQRT1_2);
  case UnaryKind::k_gelu_tanh:
    return geluTanh(x);
  case UnaryKind::k_softplus:
    return softplus(x);
  case UnaryKind::k_softsign:
    return x / (1 + std::fabs(x));
  case UnaryKind::k_mish:
    return x * std::tanh(softplus(x));
  case UnaryKind::k_swish:
    return x * sigmoid(alpha * x);
  case UnaryKind::k_shrink:
    return shrink(x, alpha, beta);
  case UnaryKind::k_sin:
    return std::sin(x);
  case UnaryKind::k_cos:
    return std::cos(x);
  case UnaryKind::k_tan:
    return std::tan(x);
  case UnaryKind::k_asin:
    return std::asin(x);
  case UnaryKind::k_acos:
    return std::acos(x);
  case UnaryKind::k_atan:
    return std::atan(x);
  case UnaryKind::k_sinh:
    return std::sinh(x);
  case UnaryKind::k_cosh:
    return std::cosh(x);
  case UnaryKind::k_asinh:
    return std::asinh(x);
  case UnaryKind::k_acosh:
    return std::acosh(x);
  case UnaryKind::k_atanh:
    return std::atanh(x);
  case UnaryKind::k_not:
    return x == 0;
  case UnaryKind::k_isnan:
    return std::isnan(x);
  case UnaryKind::k_isinf:
    return std::isinf(x) && (x < 0 ? alpha : beta) != 0;
  case UnaryKind::k_bitnot:
  case UnaryKind::kCount:
    break;
  }
  return 0;
}

double binaryValue(BinaryKind kind, double a, double b) {
  switch (kind) {
  case BinaryKind::k_add:
    return a + b;
  case BinaryKind::k_sub:
    return a - b;
  case BinaryKind::k_mul:
    return a * b;
  case BinaryKind::k_div:
    return a / b;
  case BinaryKind::k_pow:
    return std::pow(a, b);
  case BinaryKind::k_min:
    return a < b || std::isnan(a) ? a : b;
  case BinaryKind::k_max:
    return a > b || std::isnan(a) ? a : b;
  case BinaryKind::k_mod: {
    double rest = std::fmod(a, b);
    if (rest == 0)
      return std::copysign(0.0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
  }
  case BinaryKind::k_fmod:
    return std::fmod(a, b);
  case BinaryKind::k_and:
    return a != 0 && b != 0;
  case BinaryKind::k_or:
    return a != 0 || b != 0;
  case BinaryKind::k_xor:
    return (a != 0) != (b != 0);
  case BinaryKind::k_prelu:
    return a < 0 ? a * b : a;
  default:
    return 0;
  }
}

int64_t powInteger(int64_t base, double exponent) {
  if (exponent != std::floor(exponent) || exponent < 0 || exponent > 0x1p62)
    return truncateTo<int64_t>(std::pow(double(base), exponent));
  uint64_t result = 1, factor = uint64_t(base);
  for (uint64_t e = uint64_t(exponent); e != 0; e >>= 1) {
    if (e & 1)
      result *= factor;
    factor *= factor;
  }
  return int64_t(result);
}

namespace {
bool isPlainInteger(DType type) { return isInteger(type) && dtypeBits(type) >= 8; }
} // namespace

bool unaryTakes(UnaryKind kind, DType type) {
  switch (kind) {
  case UnaryKind::k_abs:
  case UnaryKind::k_neg:
  case UnaryKind::k_sign:
  case UnaryKind::k_relu:
  case UnaryKind::k_shrink:
    return isPlainFloat(type) || isPlainInteger(type);
  case UnaryKind::k_not:
    return type == DType::Bool;
  case UnaryKind::k_bitnot:
    return isPlainInteger(type);
  case UnaryKind::k_isnan:
  case UnaryKind::k_isinf:
    return isFloat(type) && dtypeBits(type) >= 8;
  default:
    return isPlainFloat(type);
  }
}

bool binaryTakes(BinaryKind kind, DType type) {
  switch (kind) {
  case BinaryKind::k_and:
  case BinaryKind::k_or:
  case BinaryKind::k_xor:
    return type == DType::Bool;
  case BinaryKind::k_bitand:
  case BinaryKind::k_bitor:
  case BinaryKind::k_bitxor:
  case BinaryKind::k_shl:
  case BinaryKind::k_shr:
    return isPlainInteger(type);
  default:
    return isPlainFloat(type) || isPlainInteger(type);
  }
}

} // namespace dspark
