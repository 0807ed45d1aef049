// Accuracy of kernels/common/vector_math.h, through the loops built on it, against f64 libm: a sweep over all
// of f32 in steps of a prime number of codes, at every level this machine has.
#include "kernels/elementwise/float_loops.h"
#include <bit>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <vector>

namespace dspark {
namespace {

/// |a - b| in units of b's last place as f32 (of the smallest subnormal near zero).
double ulps(float a, double b) {
  float nearest = float(b);
  if (std::isnan(nearest) || std::isinf(nearest))
    return (std::isnan(a) && std::isnan(nearest)) || a == nearest ? 0 : INFINITY;
  if (std::isnan(a) || std::isinf(a))
    return INFINITY;
  double unit = std::fabs(double(std::nextafterf(nearest, INFINITY)) - nearest);
  return std::fabs(a - b) / unit;
}

struct Case {
  UnaryKind kind;
  std::function<double(double)> exact;
  double ulp;
  double absolute = 0; // also accepted: for functions that are computed as a difference
};

class VectorMath : public testing::TestWithParam<Isa> {};

TEST_P(VectorMath, SweepAgainstF64) {
  if (GetParam() > machineIsa())
    GTEST_SKIP() << "this machine has no " << isaName(GetParam());
  auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  auto softplus = [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); };
  const Case cases[] = {
      {UnaryKind::k_exp, [](double x) { return std::exp(x); }, 4},
      {UnaryKind::k_log, [](double x) { return std::log(x); }, 4},
      {UnaryKind::k_tanh, [](double x) { return std::tanh(x); }, 4},
      {UnaryKind::k_sigmoid, sigmoid, 4},
      {UnaryKind::k_erf, [](double x) { return std::erf(x); }, 4},
      {UnaryKind::k_sin, [](double x) { return std::sin(x); }, 4, 1e-7},
      {UnaryKind::k_cos, [](double x) { return std::cos(x); }, 4, 1e-7},
      {UnaryKind::k_softplus, softplus, 4},
      {UnaryKind::k_elu, [](double x) { return x > 0 ? x : std::expm1(x); }, 6},
      // x times a subnormal sigmoid, which has few bits.
      {UnaryKind::k_silu, [&](double x) { return x * sigmoid(x); }, 6, 1e-42},
      {UnaryKind::k_mish, [&](double x) { return x * std::tanh(softplus(x)); }, 8, 1e-42},
      {UnaryKind::k_gelu, [](double x) { return x / 2 * std::erfc(-x * M_SQRT1_2); }, 6, 1e-7},
      {UnaryKind::k_gelu_tanh,
       [](double x) {
         double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
         return u > 0 ? x / 2 * (1 + std::tanh(u)) : x / (1 + std::exp(-2 * u));
       },
       8, 1e-6},
      {UnaryKind::k_floor, [](double x) { return std::floor(x); }, 0},
      {UnaryKind::k_ceil, [](double x) { return std::ceil(x); }, 0},
      {UnaryKind::k_round, [](double x) { return std::nearbyint(x); }, 0},
      {UnaryKind::k_sqrt, [](double x) { return std::sqrt(x); }, 0.5},
  };
  std::vector<float> x;
  for (uint64_t code = 0; code < (uint64_t(1) << 32); code += 15401)
    x.push_back(std::bit_cast<float>(uint32_t(code)));
  for (float special :
       {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, -1.0f, 0.5f, 2.5f, -2.5f, 88.7f, -103.9f})
    x.push_back(special);
  std::vector<float> y(x.size());
  for (const Case &c : cases) {
    floatLoops(GetParam()).unary[int(c.kind)](x.data(), y.data(), int64_t(x.size()), 1, 0);
    double worst = 0;
    float at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      double exact = c.exact(x[i]), error = ulps(y[i], exact);
      if (std::fabs(y[i] - exact) > c.absolute && !(error <= worst)) {
        worst = error;
        at = x[i];
      }
    }
    EXPECT_LE(worst, c.ulp) << kindName(c.kind) << " at " << at;
    RecordProperty(std::string(kindName(c.kind)), std::to_string(worst));
  }
}

TEST_P(VectorMath, SameInEveryLane) {
  if (GetParam() > machineIsa())
    GTEST_SKIP() << "this machine has no " << isaName(GetParam());
  const FloatLoops &loops = floatLoops(GetParam());
  for (int kind = 0; kind < int(UnaryKind::kCount); ++kind) {
    if (!loops.unary[kind])
      continue;
    // Finite for every kind, so that equal bits can be asked for.
    float single = 0, block[39], x[39];
    std::fill(x, x + 39, 1.25f);
    loops.unary[kind](x, &single, 1, 0.3f, 0.7f);
    loops.unary[kind](x, block, 39, 0.3f, 0.7f);
    for (float value : block)
      EXPECT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(single)) << kindName(UnaryKind(kind));
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, VectorMath, testing::Values(Isa::Baseline, Isa::Avx2, Isa::Avx512),
                         [](const auto &info) { return std::string(isaName(info.param)); });

} // namespace
} // namespace dspark
