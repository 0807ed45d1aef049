// Every unary kind that has generated code, alone, against f64: its error in units of the last place and its
// special values, at each level this machine runs.
#include "FusedHarness.h"
#include "FusedReference.h"
#include <array>
#include <bit>
#include <random>

using namespace dspark;
using namespace dspark::test;

namespace {

std::vector<UnaryKind> generatedUnaries() {
  std::vector<UnaryKind> kinds;
  for (int i = 0; i < int(UnaryKind::kCount); ++i)
    if (canGenerate(program(1, {unary(UnaryKind(i), 0)}, {1})))
      kinds.push_back(UnaryKind(i));
  return kinds;
}

// All exponents and signs (bit patterns), the range where activations live, and the values that go wrong.
std::vector<float> sweep() {
  constexpr float inf = INFINITY;
  std::vector<float> x = {0.0f,          -0.0f,       inf,      -inf,    NAN,        -NAN,       FLT_TRUE_MIN,
                          -FLT_TRUE_MIN, FLT_MIN,     -FLT_MIN, FLT_MAX, -FLT_MAX,   1,          -1,
                          0.5f,          -0.5f,       1.5f,     2.5f,    -2.5f,      88.72f,     88.73f,
                          -87.33f,       -87.34f,     -103.9f,  -104.1f, 8388607.5f, 8388608.0f, -8388609.0f,
                          0.927734375f,  0.92773444f, 9.01f,    1e9f,    1.1e9f};
  for (uint64_t bits = 0; bits < (1ull << 32); bits += 40009)
    x.push_back(std::bit_cast<float>(uint32_t(bits)));
  std::mt19937 random(1);
  for (float limit : {1.0f, 4.0f, 20.0f, 105.0f})
    for (int i = 0; i < 50000; ++i)
      x.push_back(std::uniform_real_distribution<float>(-limit, limit)(random));
  return x;
}

double ulp(double value) {
  int exponent;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, std::max(exponent - 24, -149));
}

TEST(FusedAccuracy, EveryUnaryKindAtEveryLevel) {
  std::vector<UnaryKind> kinds = generatedUnaries();
  std::vector<FusedKernelSpec> specs;
  for (UnaryKind kind : kinds)
    specs.push_back(contiguous(1, {unary(kind, 0)}, {1}));
  std::vector<float> x = sweep(), y(x.size());
  for (Isa level : runnableLevels()) {
    LoadedLibrary library(compileOrFail(specs, level));
    for (size_t k = 0; k < kinds.size(); ++k) {
      FusedFn run = library.find(specs[k]);
      ASSERT_NE(run, nullptr);
      void *operands[] = {x.data(), y.data()};
      int64_t strides[] = {0, 0};
      run(operands, 1, int64_t(x.size()), strides);

      const FusedInstruction &i = specs[k].program.code[0];
      UnaryBound bound = unaryBound(kinds[k]);
      std::string where = std::string(kindName(kinds[k])) + " at " + std::string(isaName(level));
      double worst = 0;
      int failures = 0;
      for (size_t n = 0; n < x.size() && failures < 5; ++n) {
        double want = unaryReference(kinds[k], x[n], i.alpha, i.beta);
        // Values beyond f32 are infinite in f32; half an ulp below, either may be right.
        if (std::fabs(want) > FLT_MAX)
          want = std::isinf(y[n]) || std::isinf(want) ? std::copysign(INFINITY, want) : want;
        bool same = std::isnan(want) ? std::isnan(y[n]) : std::isinf(want) ? want == y[n] : false;
        if (same)
          continue;
        double error = std::fabs(y[n] - want);
        // Absolute terms: see UnaryBound; and a denormal factor that x multiplies has lost digits already.
        double scale = std::isfinite(x[n]) ? std::max(1.0, std::fabs(double(x[n]))) : 1;
        double slack = scale * (bound.absolute * FLT_EPSILON + bound.ulps * FLT_TRUE_MIN);
        if (!(error <= bound.ulps * ulp(want) + slack)) {
          ++failures;
          ADD_FAILURE() << where << ": f(" << x[n] << ") = " << y[n] << ", not " << want;
        }
        worst = std::max(worst, error / ulp(want));
      }
      RecordProperty(where, std::to_string(worst));
      if (getenv("DSPARK_TEST_VERBOSE"))
        printf("%-30s %.2f ulp\n", where.c_str(), worst);
    }
  }
}

// Every pair of values that go wrong, for everything that takes two operands or bounds: exact, NaN included.
TEST(FusedAccuracy, PairsOfSpecialValues) {
  const std::vector<float> values = {0.0f,         -0.0f,         1,       -1,   2.5f,    -2.5f,
                                     INFINITY,     -INFINITY,     NAN,     -NAN, FLT_MAX, -FLT_MAX,
                                     FLT_TRUE_MIN, -FLT_TRUE_MIN, FLT_MIN, 0.1f};
  std::vector<FusedInstruction> instructions = {clip(0, -1, 2), clip(0, -INFINITY, 0), clip(0, 2, -1),
                                                select(0, 1, 0)};
  for (int i = 0; i < int(BinaryKind::kCount); ++i)
    instructions.push_back(binary(BinaryKind(i), 0, 1));
  for (int i = 0; i < int(CompareKind::kCount); ++i)
    instructions.push_back(compare(CompareKind(i), 0, 1));
  std::erase_if(instructions, [](const FusedInstruction &i) { return !canGenerate(program(2, {i}, {2})); });
  std::vector<FusedKernelSpec> specs;
  for (const FusedInstruction &i : instructions)
    specs.push_back(contiguous(2, {i}, {2}));

  std::vector<float> a, b;
  for (float x : values)
    for (float y : values) {
      a.push_back(x);
      b.push_back(y);
    }
  std::vector<float> result(a.size());
  for (Isa level : runnableLevels()) {
    LoadedLibrary library(compileOrFail(specs, level));
    for (size_t k = 0; k < specs.size(); ++k) {
      void *operands[] = {a.data(), b.data(), result.data()};
      int64_t strides[] = {0, 0, 0};
      library.find(specs[k])(operands, 1, int64_t(a.size()), strides);
      ReferenceEvaluator evaluate(specs[k].program);
      for (size_t i = 0; i < a.size(); ++i) {
        // f64 holds sums, products and quotients of f32 closely enough to round to the same f32.
        float want = float(evaluate(std::array{a[i], b[i]})[0].value);
        EXPECT_TRUE(result[i] == want || (std::isnan(result[i]) && std::isnan(want)))
            << "instruction " << k << " of category " << int(instructions[k].category) << ", kind "
            << int(instructions[k].kind) << " at " << isaName(level) << ": f(" << a[i] << ", " << b[i]
            << ") = " << result[i] << ", not " << want;
      }
    }
  }
}

} // namespace
