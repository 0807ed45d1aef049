// Fused regions: programs that break a rule are refused, and the interpreter and the caller of generated code
// give what evaluating the program element by element gives.
#include "kernels/elementwise/scalar.h"
#include "test/kernels/fused/fused_case.h"
#include <functional>

namespace dspark::test {
namespace {

/// What the program makes at one element, in f64.
std::vector<double> evaluate(const Program &p, std::vector<double> values) {
  for (size_t i = 0; i < p.words.size() / kFusedStride; ++i) {
    const int64_t *w = &p.words[i * kFusedStride];
    double alpha = p.params[2 * i], beta = p.params[2 * i + 1];
    auto v = [&](int k) { return values[size_t(w[2 + k])]; };
    switch (FusedCategory(w[0])) {
    case FusedCategory::Unary:
      values.push_back(unaryValue(UnaryKind(w[1]), v(0), alpha, beta));
      break;
    case FusedCategory::Binary:
      values.push_back(binaryValue(BinaryKind(w[1]), v(0), v(1)));
      break;
    case FusedCategory::Compare:
      values.push_back(compareValues(CompareKind(w[1]), v(0), v(1)));
      break;
    case FusedCategory::Select:
      values.push_back(v(0) != 0 ? v(1) : v(2));
      break;
    case FusedCategory::Clip:
      values.push_back(std::min(std::max(v(0), alpha), beta));
      break;
    case FusedCategory::Constant:
      values.push_back(alpha);
      break;
    case FusedCategory::Reduce: // fused_rows_test.cpp
      break;
    }
  }
  std::vector<double> results;
  for (int64_t r : p.results)
    results.push_back(values[size_t(r)]);
  return results;
}

/// Every category, a scalar subexpression, two outputs of which one is also used inside.
Program everything() {
  Program p;                                                        // inputs: 0 x, 1 y, 2 z (bool)
  p.add(kConstantOp, 0, 0, 0, 0, 0.5);                              // 3: 0.5
  p.add(kBinaryOp, int64_t(BinaryKind::k_mul), 0, 3);               // 4: x / 2
  p.add(kBinaryOp, int64_t(BinaryKind::k_add), 4, 1);               // 5: x / 2 + y
  p.add(kUnaryOp, int64_t(UnaryKind::k_sigmoid), 5);                // 6
  p.add(kClipOp, 0, 6, 0, 0, 0.2, 0.7);                             // 7
  p.add(kCompareOp, int64_t(CompareKind::k_gt), 0, 1);              // 8: x > y
  p.add(kSelectOp, 0, 2, 7, 3);                                     // 9: z ? 7 : 0.5
  p.add(kSelectOp, 0, 8, 9, 1);                                     // 10
  p.add(kUnaryOp, int64_t(UnaryKind::k_leaky_relu), 10, 0, 0, 0.1); // 11
  p.results = {11, 5};
  return p;
}

struct Case {
  std::vector<int64_t> x, y, z;
};
const Case kCases[] = {{{9}, {9}, {9}},
                       {{40000}, {1}, {40000}},
                       {{100, 513}, {513}, {100, 1}},
                       {{3000, 7}, {7}, {3000, 1}},
                       {{4, 1, 5}, {3, 1}, {}},
                       {{2, 3, 20, 30}, {3, 1, 1}, {2, 1, 1, 30}},
                       {{}, {}, {}},
                       {{0, 4}, {4}, {1}}};

std::vector<Tensor> makeInputs(const Case &c, std::mt19937 &rng) {
  std::vector<Tensor> in = {uniform(c.x, rng), uniform(c.y, rng), zeros(DType::Bool, c.z)};
  for (std::byte &byte : in[2].bytes)
    byte = std::byte(rng() & 1);
  return in;
}

void check(const Program &p, std::vector<Tensor> &in, const std::vector<Tensor> &out, const char *row) {
  for (int64_t k = 0; k < out[0].elements(); k += out[0].elements() > 5000 ? 13 : 1) {
    const std::vector<int64_t> &dims = out[0].dims;
    std::vector<double> values = {in[0].as<float>()[indexOf(dims, in[0].dims, k)],
                                  in[1].as<float>()[indexOf(dims, in[1].dims, k)],
                                  double(in[2].as<uint8_t>()[indexOf(dims, in[2].dims, k)])};
    std::vector<double> expected = evaluate(p, values);
    for (size_t r = 0; r < out.size(); ++r)
      ASSERT_NEAR(out[r].as<float>()[k], expected[r], 1e-6) << row << " result " << r << " element " << k;
  }
}

TEST(Fused, InterpreterOnEveryShape) {
  std::mt19937 rng(1);
  Program p = everything();
  for (const Kernel *row : rowsOf("fused"))
    if (std::string_view(row->name).starts_with("fused_interpreter"))
      for (const Case &c : kCases) {
        std::vector<Tensor> in = makeInputs(c, rng);
        check(p, in, runFused(*row, in, p.attrs(), resultDims(in), 2), row->name);
      }
}

TEST(Fused, InterpreterInPlace) {
  std::mt19937 rng(2);
  Program p = everything();
  std::swap(p.results[0], p.results[1]); // the output that takes x's buffer is ready before x is last read
  std::vector<Tensor> in = makeInputs({{60, 700}, {700}, {60, 700}}, rng);
  for (const Kernel *row : rowsOf("fused"))
    if (std::string_view(row->name).starts_with("fused_interpreter"))
      check(p, in, runFused(*row, in, p.attrs(), {60, 700}, 2, nullptr, true), row->name);
}

TEST(Fused, ConstantAndInputAsResults) {
  std::mt19937 rng(3);
  Program p;
  p.add(kConstantOp, 0, 0, 0, 0, 2.5);
  p.results = {3, 1};
  for (const Kernel *row : rowsOf("fused"))
    if (std::string_view(row->name).starts_with("fused_interpreter")) {
      std::vector<Tensor> in = makeInputs({{30, 40}, {40}, {1}}, rng);
      check(p, in, runFused(*row, in, p.attrs(), {30, 40}, 2), row->name);
    }
}

// Stands in for generated code: result = x * params[0] + y with the inner strides 1, 0. The params come last.
void scaleAndAdd(void *const *operands, int64_t n0, int64_t n1, const int64_t *strides) {
  auto factor = float(*static_cast<const double *>(operands[3]));
  for (int64_t i = 0; i < n0; ++i)
    for (int64_t j = 0; j < n1; ++j)
      static_cast<float *>(operands[2])[i * strides[2] + j] =
          static_cast<float *>(operands[0])[i * strides[0] + j] * factor +
          static_cast<float *>(operands[1])[i * strides[1]];
}

TEST(Fused, GeneratedCodeWalksOuterDims) {
  std::mt19937 rng(4);
  const int64_t inner[] = {1, 0, 1};
  Program p;
  p.add(kConstantOp, 0, 0, 0, 0, 2).add(kBinaryOp, int64_t(BinaryKind::k_mul), 0, 2);
  p.add(kBinaryOp, int64_t(BinaryKind::k_add), 3, 1);
  p.results = {4};
  std::vector<Attr> attrs = p.attrs(inner);
  const void *code = reinterpret_cast<const void *>(&scaleAndAdd);
  struct Operands {
    std::vector<int64_t> x, y;
  };
  for (const Operands &c :
       {Operands{{70000}, {1}}, Operands{{300, 200}, {300, 1}}, Operands{{5, 30, 20}, {30, 1}},
        Operands{{2, 3, 4, 5}, {3, 1, 1}}, Operands{{3, 50000}, {3, 1}}, Operands{{1}, {1}}}) {
    std::vector<Tensor> in = {uniform(c.x, rng), uniform(c.y, rng)};
    for (const Kernel *row : rowsOf("fused")) {
      if (!std::string_view(row->name).starts_with("fused_generated"))
        continue;
      Tensor out = runFused(*row, in, attrs, c.x, 1, code)[0];
      for (int64_t k = 0; k < out.elements(); ++k)
        ASSERT_EQ(out.as<float>()[k],
                  in[0].as<float>()[k] * 2 + in[1].as<float>()[indexOf(c.x, in[1].dims, k)])
            << row->name << k;
    }
  }
}

TEST(Fused, OtherStridesAreInterpreted) {
  std::mt19937 rng(5);
  const int64_t inner[] = {1, 0, 1};
  Program p;
  p.add(kBinaryOp, int64_t(BinaryKind::k_add), 0, 1);
  p.results = {2};
  std::vector<Attr> attrs = p.attrs(inner);
  std::vector<Tensor> in = {uniform({4, 8}, rng), uniform({8}, rng), uniform({4, 8}, rng)};
  TensorView views[] = {in[0].view(), in[1].view()}, out = in[2].view();
  KernelCall call{views, {&out, 1}, Attrs(attrs), nullptr, reinterpret_cast<const void *>(&scaleAndAdd)};
  EXPECT_TRUE(
      std::string_view(selectKernel("fused", call, Isa::Baseline)->name).starts_with("fused_interpreter"));
}

TEST(FusedProgram, RefusesWhatBreaksTheRules) {
  struct Bad {
    const char *says;
    std::function<void(Program &)> damage;
    size_t inputs = 3;
  };
  const Bad bad[] = {
      {"multiple of 5", [](Program &p) { p.words.pop_back(); }},
      {"params has", [](Program &p) { p.params.pop_back(); }},
      {"results has", [](Program &p) { p.results.pop_back(); }},
      {"category 7", [](Program &p) { p.words[0] = 7; }},
      {"category -1", [](Program &p) { p.words[0] = -1; }},
      {"kind", [](Program &p) { p.words[6] = int64_t(BinaryKind::kCount); }},
      {"kind", [](Program &p) { p.words[6] = int64_t(BinaryKind::k_shl); }},
      {"kind", [](Program &p) { p.words[16] = -4; }},
      {"value 4", [](Program &p) { p.words[7] = 4; }}, // itself
      {"value -1", [](Program &p) { p.words[7] = -1; }},
      {"result refers", [](Program &p) { p.results[0] = 12; }},
      {"at most 24", [](Program &) {}, 23},
      {"at least one input", [](Program &) {}, 0},
      {"at most 256",
       [](Program &p) {
         for (int i = 0; i < 256; ++i)
           p.add(kConstantOp, 0);
       }},
      {"values alive",
       [](Program &p) {
         for (int i = 0; i < 125; ++i)
           p.add(kConstantOp, 0);
         for (int i = 0; i < 120; ++i)
           p.add(kBinaryOp, 0, 12 + i, 13 + i);
       }},
  };
  for (const Bad &b : bad) {
    Program p = everything();
    b.damage(p);
    std::vector<Attr> attrs = p.attrs();
    std::string error;
    EXPECT_FALSE(FusedProgram::parse(Attrs(attrs), b.inputs, 2, error)) << b.says;
    EXPECT_NE(error.find(b.says), std::string::npos) << error;
  }
}

TEST(FusedProgram, SlotsAreReused) {
  Program p;
  for (int i = 0; i < 100; ++i)
    p.add(kUnaryOp, int64_t(UnaryKind::k_neg), i);
  p.results = {100};
  std::string error;
  std::vector<Attr> attrs = p.attrs();
  std::optional<FusedProgram> program = FusedProgram::parse(Attrs(attrs), 1, 1, error);
  ASSERT_TRUE(program) << error;
  EXPECT_EQ(program->slotCount, 2);
}

} // namespace
} // namespace dspark::test
