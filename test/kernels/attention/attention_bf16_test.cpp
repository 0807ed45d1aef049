// Attention in bf16 (`arithmetic`), where the machine multiplies such.
//
// Each operand of a product is off by at most u = 2^-9 of itself. A score is then off by d = 2 u sum|q k| at
// most, a weight by the factor exp(2 d) with the sum that it is divided by, and the result, a weighted mean
// of values, by (exp(2 d) - 1 + 2 u) max|v|; sums of f32 lose far less.
#include "kernels/attention/attention_kernel.h"
#include "kernels/common/bf16_speed.h"
#include "test/kernels/attention/attention_case.h"

namespace dspark::test {
namespace {

constexpr double kUnit = 1.0 / 512;

class AttentionBf16 : public testing::Test {
protected:
  void SetUp() override {
    if (machineIsa() < Isa::Avx512 || !multipliesBf16())
      GTEST_SKIP() << "no fast products of bf16 here";
    for (const Kernel *candidate : rowsOf("attention"))
      if (candidate->accepts == acceptsAttentionBf16)
        row = candidate;
  }
  Tensor run(std::vector<Tensor> &in, const Shape &s, int threads = 2) const {
    return runRow(*row, in, rounding(s), 1, threads)[0];
  }
  static AttrList rounding(const Shape &s) {
    AttrList attrs = attributes(s);
    attrs.set("arithmetic", "bf16");
    return attrs;
  }

  const Kernel *row = nullptr;
  std::mt19937 rng{1};
};

TEST_F(AttentionBf16, IsOffByWhatRoundingLoses) {
  Shape grouped{.queries = 9}, causal{.queries = 50, .fresh = 50, .causal = true},
      masked{.queries = 8, .mask = true}, cached{.queries = 20, .fresh = 20, .past = 5, .causal = true},
      window{.queries = 39, .fresh = 39, .left = 4, .right = 1}, capped{.queries = 16, .softcap = 0.5},
      decode{.qHeads = 32, .kvHeads = 2, .queries = 1, .past = 130, .causal = true},
      wide{.batch = 1,
           .qHeads = 1,
           .kvHeads = 1,
           .queries = 300,
           .fresh = 300,
           .size = 64,
           .width = 96,
           .causal = true},
      odd{.batch = 1, .queries = 17, .fresh = 131, .size = 33, .width = 200};
  for (const Shape &s : {grouped, causal, masked, cached, window, capped, decode, wide, odd}) {
    std::vector<Tensor> in = operands(s, rng);
    std::vector<double> want = expected(s, in);
    Tensor y = run(in, s);
    double scoreError = 2 * kUnit * std::sqrt(double(s.size)); // |q|, |k| <= 1, scaled by 1/sqrt(size)
    double bound = std::expm1(2 * scoreError) + 2 * kUnit + 1e-4;
    double squares = 0, wanted = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      double off = double(y.as<float>()[i]) - want[i];
      ASSERT_LE(std::fabs(off), bound) << "queries " << s.queries << " element " << i;
      squares += off * off;
      wanted += want[i] * want[i];
    }
    // Errors of random signs: as a whole the result is off by about u, and a wrong pair would be by tens of
    // u.
    EXPECT_LE(std::sqrt(squares / wanted), 4 * kUnit) << "queries " << s.queries;
    EXPECT_GT(squares, 0) << "nothing was rounded";
  }
}

TEST_F(AttentionBf16, ResultsDoNotDependOnTilesThreadsOrRows) {
  for (int64_t size : {3, 40, 64}) {
    Shape s{.batch = 1,
            .queries = 290,
            .fresh = 290,
            .size = size,
            .width = size + 8,
            .causal = true,
            .left = 150};
    std::vector<Tensor> in = operands(s, rng);
    Tensor whole = run(in, s, 3);
    EXPECT_EQ(run(in, s, 1).bytes, whole.bytes);
    for (int64_t count : {8, 9, 17, 60}) { // two rows each
      int64_t first = s.queries - count;
      std::vector<Tensor> last = {tokens(in[0], first, s.queries), tokens(in[1], first, s.queries),
                                  tokens(in[2], first, s.queries), {},
                                  tokens(in[1], 0, first),         tokens(in[2], 0, first)};
      EXPECT_EQ(run(last, s).bytes, tokens(whole, first, s.queries).bytes)
          << "size " << size << " queries " << count;
    }
  }
}

// Values that a row does not see touch it in no way: NaN before the window, infinity in the future.
TEST_F(AttentionBf16, WhatIsHiddenIsNotTouched) {
  Shape s{.batch = 1, .queries = 61, .fresh = 61, .size = 20, .width = 24, .causal = true, .left = 9};
  std::vector<Tensor> in = operands(s, rng);
  Tensor plain = run(in, s);
  for (auto [key, value] : {std::pair<int64_t, float>{20, NAN}, {41, INFINITY}})
    in[2].as<float>()[key * s.width] = value; // of key head 0
  Tensor y = run(in, s);
  for (int64_t h = 0; h < s.qHeads; ++h)
    for (int64_t i = 0; i < s.queries; ++i) {
      auto sees = [&](int64_t key) { return h < s.qHeads / s.kvHeads && i >= key && i - key <= s.left; };
      float now = y.as<float>()[(h * s.queries + i) * s.width],
            was = plain.as<float>()[(h * s.queries + i) * s.width];
      if (sees(20))
        EXPECT_TRUE(std::isnan(now)) << h << " " << i;
      else
        EXPECT_EQ(now, sees(41) ? INFINITY : was) << h << " " << i;
    }
}

TEST_F(AttentionBf16, FewRowsAreOfF32) {
  for (int64_t queries : {7, 8}) { // two rows each
    Shape s{.batch = 1, .queries = queries, .fresh = queries};
    std::vector<Tensor> in = operands(s, rng);
    std::vector<TensorView> views;
    for (Tensor &t : in)
      views.push_back(t.view());
    AttrList attrs = rounding(s);
    KernelCall call;
    call.in = views;
    call.attrs = attrs.view();
    EXPECT_EQ(row->accepts(call), queries == 8);
  }
}

TEST(AttentionArithmetic, IsF32OrBf16) {
  Shape s;
  std::mt19937 rng(2);
  AttrList attrs = attributes(s);
  attrs.set("arithmetic", "f16");
  EXPECT_EQ(refusal("attention", operands(s, rng), attrs),
            "attribute arithmetic must be f32 or bf16, found f16");
}

} // namespace
} // namespace dspark::test
