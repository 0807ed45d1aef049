// Generated code against the catalogue's interpreter of the same program at the same level: --no-codegen must
// give the same results within rounding, and nearly all kinds give the same bits.
#include "FusedHarness.h"
#include "test/kernels/kernel_case.h"
#include <cfloat>
#include <cstring>

using namespace dspark;
using namespace dspark::test;

namespace {

AttrList attributes(const FusedProgram &program) {
  std::vector<int64_t> words, results(program.results.begin(), program.results.end());
  std::vector<double> params;
  for (const FusedInstruction &i : program.code) {
    for (int64_t word : {int64_t(i.category), int64_t(i.kind), int64_t(i.a), int64_t(i.b), int64_t(i.c)})
      words.push_back(word);
    params.push_back(i.alpha);
    params.push_back(i.beta);
  }
  AttrList attrs;
  attrs.set("program", words).set("results", results).setFloats("params", params);
  return attrs;
}

const Kernel *interpreter(Isa level) {
  for (const Kernel &row : allKernels())
    if (row.op == std::string_view("fused") && row.isa == level &&
        std::string_view(row.name).find("generated") == std::string_view::npos)
      return &row;
  return nullptr;
}

// Kinds that the interpreter computes another way (mostly through libm); both are within 4 ulp of the truth.
bool differsByFormula(UnaryKind kind) {
  switch (kind) {
  case UnaryKind::k_elu:
  case UnaryKind::k_selu:
  case UnaryKind::k_celu:
  case UnaryKind::k_asin:
  case UnaryKind::k_acos:
  case UnaryKind::k_atan:
  case UnaryKind::k_sinh:
  case UnaryKind::k_cosh:
  case UnaryKind::k_asinh:
  case UnaryKind::k_acosh:
  case UnaryKind::k_atanh:
    return true;
  default:
    return false;
  }
}

bool sameBits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0;
}

TEST(FusedAgreement, EveryUnaryKind) {
  std::vector<float> x = {0.0f,    -0.0f, INFINITY, -INFINITY, NAN,  1e-42f,
                          -1e-42f, 3e38f, -3e38f,   0.5f,      1.0f, -1.0f};
  std::mt19937 random(7);
  for (float limit : {1.0f, 8.0f, 110.0f})
    for (int i = 0; i < 3000; ++i)
      x.push_back(std::uniform_real_distribution<float>(-limit, limit)(random));
  std::vector<UnaryKind> kinds;
  std::vector<FusedKernelSpec> specs;
  for (int i = 0; i < int(UnaryKind::kCount); ++i)
    if (canGenerate(program(1, {unary(UnaryKind(i), 0)}, {1}))) {
      kinds.push_back(UnaryKind(i));
      specs.push_back(contiguous(1, {unary(kinds.back(), 0)}, {1}));
    }
  for (Isa level : runnableLevels()) {
    const Kernel *row = interpreter(level);
    if (!row)
      continue;
    LoadedLibrary library(compileOrFail(specs, level));
    for (size_t k = 0; k < kinds.size(); ++k) {
      std::vector<Tensor> in = {floats(x, {int64_t(x.size())})};
      std::vector<Tensor> want = runRow(*row, in, attributes(specs[k].program));
      std::vector<float> got(x.size());
      void *operands[] = {x.data(), got.data()};
      int64_t strides[] = {0, 0};
      library.find(specs[k])(operands, 1, int64_t(x.size()), strides);
      int failures = 0;
      for (size_t i = 0; i < x.size() && failures < 3; ++i) {
        float expected = want[0].as<float>()[i];
        bool fine = sameBits(got[i], expected) ||
                    (differsByFormula(kinds[k]) &&
                     std::fabs(got[i] - expected) <= 8 * FLT_EPSILON * std::fabs(expected));
        failures += !fine;
        EXPECT_TRUE(fine) << kindName(kinds[k]) << " at " << isaName(level) << " of " << x[i]
                          << ": generated " << got[i] << ", interpreted " << expected;
      }
    }
  }
}

} // namespace
