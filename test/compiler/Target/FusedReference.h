// A scalar f64 evaluator of fused programs that carries an error bound along: what an f32 evaluation may
// differ by when every instruction is within its own bound below. Written from the operators' definitions,
// not from the generator.
#pragma once
#include "kernels/elementwise/kinds.h"
#include "kernels/fused/program.h"
#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace dspark::test {

inline double unaryReference(UnaryKind kind, double x, double alpha, double beta) {
  auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  auto softplus = [](double v) { return std::fmax(v, 0) + std::log1p(std::exp(-std::fabs(v))); };
  auto hardSigmoid = [&] { return std::isnan(x) ? x : std::clamp(alpha * x + beta, 0.0, 1.0); };
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
    return x > 0 ? 1 : x < 0 ? -1 : x;
  case UnaryKind::k_relu:
    return x < 0 ? 0 : x;
  case UnaryKind::k_leaky_relu:
    return x < 0 ? alpha * x : x;
  case UnaryKind::k_elu:
    return x < 0 ? alpha * std::expm1(x) : x;
  case UnaryKind::k_selu:
    return beta * (x < 0 ? alpha * std::expm1(x) : x);
  case UnaryKind::k_celu:
    return x < 0 ? alpha * std::expm1(x / alpha) : x;
  case UnaryKind::k_thresholded_relu:
    return x > alpha ? x : 0;
  case UnaryKind::k_hard_sigmoid:
    return hardSigmoid();
  case UnaryKind::k_hard_swish:
    return x * hardSigmoid();
  case UnaryKind::k_sigmoid:
    return sigmoid(x);
  case UnaryKind::k_silu:
    return x * sigmoid(x);
  case UnaryKind::k_swish:
    return x * sigmoid(alpha * x);
  case UnaryKind::k_tanh:
    return std::tanh(x);
  case UnaryKind::k_erf:
    return std::erf(x);
  case UnaryKind::k_gelu:
    return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  case UnaryKind::k_gelu_tanh:
    return x * sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)); // = x/2 (1 + tanh(...))
  case UnaryKind::k_softplus:
    return std::isnan(x) ? x : softplus(x);
  case UnaryKind::k_softsign:
    return x / (1 + std::fabs(x));
  case UnaryKind::k_mish:
    return std::isnan(x) ? x : x * std::tanh(softplus(x));
  case UnaryKind::k_shrink:
    return x < -alpha ? x + beta : x > alpha ? x - beta : 0;
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
  default:
    return std::numeric_limits<double>::signaling_NaN(); // no generated code
  }
}

inline double binaryReference(BinaryKind kind, double x, double y) {
  switch (kind) {
  case BinaryKind::k_add:
    return x + y;
  case BinaryKind::k_sub:
    return x - y;
  case BinaryKind::k_mul:
    return x * y;
  case BinaryKind::k_div:
    return x / y;
  case BinaryKind::k_pow:
    return std::pow(x, y);
  case BinaryKind::k_min:
    return std::isnan(x) || std::isnan(y) ? NAN : std::min(x, y);
  case BinaryKind::k_max:
    return std::isnan(x) || std::isnan(y) ? NAN : std::max(x, y);
  case BinaryKind::k_and:
    return x != 0 && y != 0;
  case BinaryKind::k_or:
    return x != 0 || y != 0;
  case BinaryKind::k_xor:
    return (x != 0) != (y != 0);
  case BinaryKind::k_prelu:
    return x < 0 ? x * y : x;
  default:
    return std::numeric_limits<double>::signaling_NaN();
  }
}

inline bool compareReference(CompareKind kind, double x, double y) {
  switch (kind) {
  case CompareKind::k_eq:
    return x == y;
  case CompareKind::k_lt:
    return x < y;
  case CompareKind::k_le:
    return x <= y;
  case CompareKind::k_gt:
    return x > y;
  default:
    return x >= y;
  }
}

/// What one f32 evaluation of a unary kind may be off by: `ulps` relative to the result, plus `absolute` ulps
/// of the larger of 1 and |x| where the definition itself cancels (1 + erf, alpha x + beta).
struct UnaryBound {
  double ulps, absolute = 0;
};
inline UnaryBound unaryBound(UnaryKind kind) {
  switch (kind) {
  case UnaryKind::k_abs:
  case UnaryKind::k_neg:
  case UnaryKind::k_floor:
  case UnaryKind::k_ceil:
  case UnaryKind::k_round:
  case UnaryKind::k_sign:
  case UnaryKind::k_relu:
  case UnaryKind::k_thresholded_relu:
  case UnaryKind::k_not:
  case UnaryKind::k_isnan:
  case UnaryKind::k_isinf:
    return {0};
  case UnaryKind::k_sqrt:
  case UnaryKind::k_reciprocal:
  case UnaryKind::k_leaky_relu:
    return {0.5};
  case UnaryKind::k_rsqrt:
  case UnaryKind::k_softsign:
    return {1.5};
  case UnaryKind::k_shrink:
    return {0.5};
  case UnaryKind::k_hard_sigmoid:
  case UnaryKind::k_hard_swish:
    return {2, 2};
  case UnaryKind::k_swish:
  case UnaryKind::k_gelu:
  case UnaryKind::k_gelu_tanh:
    return {4, 2};
  case UnaryKind::k_mish:
    // exp within 1.2 ulp, then four roundings of half an ulp. In relative size an ulp varies by a factor of
    // two, so that each may count double in the result.
    return {2 * 1.2 + 4};
  default:
    return {4};
  }
}

struct Bounded {
  double value, error = 0;
  bool unknown = false; // overflow or NaN within the bound: nothing can be said about the f32 result
};

class ReferenceEvaluator {
public:
  explicit ReferenceEvaluator(const FusedProgram &program) : program(program) {}

  /// The results at one element.
  std::vector<Bounded> operator()(std::span<const float> inputs) const {
    std::vector<Bounded> values;
    for (float x : inputs)
      values.push_back({x});
    for (const FusedInstruction &i : program.code)
      values.push_back(step(i, values));
    std::vector<Bounded> results;
    for (int number : program.results)
      results.push_back(values[number]);
    return results;
  }

private:
  static constexpr double kUlp = FLT_EPSILON; // of a number just above a power of two: the worst case

  static Bounded step(const FusedInstruction &i, const std::vector<Bounded> &values) {
    std::array<Bounded, 3> x = {{{0}, {0}, {0}}};
    auto take = [&](int slot, int number) { x[slot] = values[number]; };
    switch (i.category) {
    case FusedCategory::Reduce: // FusedRows_test.cpp
      break;
    case FusedCategory::Constant:
      return {i.alpha};
    case FusedCategory::Unary: {
      take(0, i.a);
      UnaryBound bound = unaryBound(UnaryKind(i.kind));
      return apply(x, bound.ulps, bound.absolute * std::max(1.0, std::fabs(x[0].value)),
                   [&](auto v) { return unaryReference(UnaryKind(i.kind), v[0], i.alpha, i.beta); });
    }
    case FusedCategory::Binary: {
      take(0, i.a);
      take(1, i.b);
      double ulps = BinaryKind(i.kind) == BinaryKind::k_pow ? 2 : 0.5;
      return apply(x, ulps, 0, [&](auto v) { return binaryReference(BinaryKind(i.kind), v[0], v[1]); });
    }
    case FusedCategory::Compare:
      take(0, i.a);
      take(1, i.b);
      return apply(x, 0, 0,
                   [&](auto v) { return double(compareReference(CompareKind(i.kind), v[0], v[1])); });
    case FusedCategory::Select:
      take(0, i.a);
      take(1, i.b);
      take(2, i.c);
      return apply(x, 0, 0, [&](auto v) { return v[0] != 0 ? v[1] : v[2]; });
    case FusedCategory::Clip:
      take(0, i.a);
      return apply(x, 0, 0, [&](auto v) {
        return std::isnan(v[0]) ? v[0] : std::fmin(std::fmax(v[0], i.alpha), i.beta);
      });
    }
    return {0, 0, true};
  }

  // The error of the operands moves the result by what it does at their corners; the instruction adds its
  // own.
  template <typename F>
  static Bounded apply(const std::array<Bounded, 3> &x, double ulps, double absolute, F f) {
    double value = f(std::array{x[0].value, x[1].value, x[2].value}), spread = 0;
    bool unknown = x[0].unknown || x[1].unknown || x[2].unknown;
    bool special = std::isnan(value) || std::isinf(value);
    for (int corner = 0; corner < 27; ++corner) {
      auto at = [&](int k, int digit) { return x[k].value + x[k].error * (digit - 1); };
      double moved = f(std::array{at(0, corner % 3), at(1, corner / 3 % 3), at(2, corner / 9)});
      if (special ? !(moved == value || (std::isnan(moved) && std::isnan(value))) : !std::isfinite(moved))
        unknown = true;
      else if (!special)
        spread = std::max(spread, std::fabs(moved - value));
    }
    if (!special && std::fabs(value) + spread > FLT_MAX / 2)
      unknown = true;
    if (special)
      return {value, 0, unknown};
    // 1.1: the corners are not quite the extremes of a curved function. Denormals round to multiples of
    // 2^-149.
    return {value, 1.1 * spread + kUlp * (ulps * std::fabs(value) + absolute) + ulps * FLT_TRUE_MIN, unknown};
  }

  const FusedProgram &program;
};

} // namespace dspark::test
