// attention against a plain evaluation in double, over every row and the combinations of heads, masks,
// windows, caches and padding that ONNX allows; then the special cases that its text promises.
#include "kernels/attention/attention_kernel.h"
#include "kernels/common/element.h"
#include "test/kernels/attention/attention_case.h"
#include <gmock/gmock.h>

namespace dspark::test {
namespace {

// Those that compute in f32.
std::vector<const Kernel *> plainRows() {
  std::vector<const Kernel *> rows = rowsOf("attention");
  std::erase_if(rows, [](const Kernel *row) { return row->accepts == acceptsAttentionBf16; });
  return rows;
}

TEST(Attention, MatchesDoubleOnEveryRow) {
  std::mt19937 rng(1);
  Shape grouped, causal{.causal = true}, masked{.mask = true}, cached{.past = 5, .causal = true},
      window{.queries = 9, .left = 2, .right = 1}, capped{.softcap = 0.5},
      decode{.queries = 1, .past = 130, .causal = true},
      wide{.batch = 1,
           .qHeads = 1,
           .kvHeads = 1,
           .queries = 70,
           .fresh = 70,
           .size = 64,
           .width = 64,
           .causal = true};
  for (const Shape &s : {grouped, causal, masked, cached, window, capped, decode, wide}) {
    std::vector<Tensor> in = operands(s, rng);
    std::vector<double> want = expected(s, in);
    for (const Kernel *row : plainRows()) {
      std::vector<Tensor> out = runRow(*row, in, attributes(s));
      ASSERT_EQ(out.size(), 1u);
      // Values are at most 1, and a weighted mean of them loses a few ulp per score: |score| < 11, error 11 *
      // size * eps.
      double tolerance = 11 * double(s.size) * 6e-8;
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(out[0].as<float>()[i], want[i], tolerance) << row->name << " element " << i;
    }
  }
}

TEST(Attention, ResultsDoNotDependOnTilesOrThreads) {
  std::mt19937 rng(2);
  Shape s{.queries = 67, .fresh = 67, .size = 40, .width = 24, .causal = true};
  std::vector<Tensor> in = operands(s, rng);
  for (const Kernel *row : plainRows())
    EXPECT_EQ(runRow(*row, in, attributes(s), 1, 1)[0].bytes, runRow(*row, in, attributes(s), 1, 3)[0].bytes);
}

TEST(Attention, TokenByTokenEqualsAllAtOnce) {
  std::mt19937 rng(7);
  Shape s{.batch = 1, .queries = 29, .fresh = 29, .size = 16, .width = 24, .causal = true, .left = 11};
  std::vector<Tensor> in = operands(s, rng);
  for (const Kernel *row : plainRows()) {
    Tensor whole = runRow(*row, in, attributes(s))[0];
    for (int64_t i = 1; i < s.queries; ++i) {
      std::vector<Tensor> one = {tokens(in[0], i, i + 1), tokens(in[1], i, i + 1),
                                 tokens(in[2], i, i + 1), {},
                                 tokens(in[1], 0, i),     tokens(in[2], 0, i)};
      ASSERT_EQ(runRow(*row, one, attributes(s))[0].bytes, tokens(whole, i, i + 1).bytes)
          << row->name << " token " << i;
    }
  }
}

// Long enough for several blocks of keys, so that decoding splits the context where the prefill does not;
// 16-bit types, GQA and a window; a value that a row does not see is poison.
TEST(Attention, DecodingEqualsPrefillAcrossBlocks) {
  std::mt19937 rng(8);
  Shape s{.batch = 1, .queries = 700, .fresh = 700, .size = 40, .width = 48, .causal = true, .left = 300};
  std::vector<Tensor> in = operands(s, rng);
  for (const Kernel *row : plainRows()) {
    if (row == plainRows().back())
      continue; // the reference has no blocks
    Tensor whole = runRow(*row, in, attributes(s), 1, 3)[0];
    for (int64_t i : {255, 256, 257, 511, 599, 699}) {
      Tensor past = tokens(in[2], 0, i);
      if (i > s.left)
        std::fill_n(past.as<float>(), s.width, NAN); // value 0 of head 0, behind the window
      std::vector<Tensor> one = {tokens(in[0], i, i + 1), tokens(in[1], i, i + 1),
                                 tokens(in[2], i, i + 1), {},
                                 tokens(in[1], 0, i),     past};
      ASSERT_EQ(runRow(*row, one, attributes(s))[0].bytes, tokens(whole, i, i + 1).bytes)
          << row->name << " token " << i;
    }
  }
}

// Few rows read keys and values where they lie, in tiles of their own; sizes that fill no vector.
TEST(Attention, ARowDoesNotDependOnHowManyThereAre) {
  std::mt19937 rng(11);
  for (int64_t size : {3, 8, 36, 72, 128}) {
    Shape s{.batch = 1, .queries = 290, .fresh = 290, .size = size, .width = size, .causal = true};
    std::vector<Tensor> in = operands(s, rng);
    for (const Kernel *row : plainRows()) {
      if (row == plainRows().back())
        continue; // the reference has one order of sums
      Tensor whole = runRow(*row, in, attributes(s))[0];
      for (int64_t count : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17}) { // two rows each
        int64_t first = s.queries - count;
        std::vector<Tensor> last = {tokens(in[0], first, s.queries), tokens(in[1], first, s.queries),
                                    tokens(in[2], first, s.queries), {},
                                    tokens(in[1], 0, first),         tokens(in[2], 0, first)};
        ASSERT_EQ(runRow(*row, last, attributes(s))[0].bytes, tokens(whole, first, s.queries).bytes)
            << row->name << " size " << size << " queries " << count;
      }
    }
  }
}

// Halves are widened exactly, so a 16-bit cache differs from its f32 copy by the rounding of the result only.
TEST(Attention, HalvesAreTheirFloatsRoundedOnce) {
  std::mt19937 rng(9);
  Shape s{.queries = 5, .fresh = 300, .size = 20, .width = 36};
  for (DType type : {DType::F16, DType::BF16}) {
    std::vector<Tensor> in = operands(s, rng), halves;
    for (Tensor &t : in) {
      Tensor half = zeros(type, t.dims);
      for (int64_t i = 0; i < t.elements(); ++i) {
        float &v = t.as<float>()[i];
        if (type == DType::F16)
          v = float(half.as<F16>()[i] = F16(v));
        else
          v = float(half.as<BF16>()[i] = BF16(v));
      }
      halves.push_back(half);
    }
    for (const Kernel *row : plainRows()) {
      Tensor full = runRow(*row, in, {})[0], half = runRow(*row, halves, {})[0];
      for (int64_t i = 0; i < full.elements(); ++i) {
        float v = full.as<float>()[i];
        float want = type == DType::F16 ? float(F16(v)) : float(BF16(v));
        float got = type == DType::F16 ? float(half.as<F16>()[i]) : float(half.as<BF16>()[i]);
        ASSERT_EQ(got, want) << row->name << " element " << i;
      }
    }
  }
}

TEST(Attention, MasksOfEveryTypeAndBroadcast) {
  std::mt19937 rng(10);
  Shape s{.queries = 6, .fresh = 270};
  std::vector<Tensor> in = operands(s, rng);
  Tensor hidden = filled<uint8_t>(DType::Bool, {s.batch, 1, s.queries, 261}, [&] { return rng() % 3 != 0; });
  Tensor bias = zeros(DType::F32, hidden.dims), half = zeros(DType::F16, hidden.dims);
  for (int64_t i = 0; i < hidden.elements(); ++i) {
    bias.as<float>()[i] = hidden.as<uint8_t>()[i] ? 0 : -INFINITY;
    half.as<F16>()[i] = F16(bias.as<float>()[i]);
  }
  in.push_back(hidden);
  std::vector<Tensor> want = runOp("attention", in);
  for (const Kernel *row : plainRows())
    for (const Tensor &mask : {hidden, bias, half}) {
      in[3] = mask;
      Tensor y = runRow(*row, in, {})[0];
      for (int64_t i = 0; i < y.elements(); ++i) // as in MatchesDoubleOnEveryRow
        ASSERT_NEAR(y.as<float>()[i], want[0].as<float>()[i], 11 * double(s.size) * 6e-8) << row->name;
    }
}

TEST(Attention, PackedHeadsAreTheSameHeads) {
  std::mt19937 rng(3);
  Shape s{.batch = 1, .queries = 3};
  std::vector<Tensor> in = operands(s, rng), packed = in;
  auto pack = [&](Tensor &t) { // [1,H,S,D] -> [1,S,H*D]
    Tensor from = t;
    int64_t heads = t.dims[1], rows = t.dims[2], width = t.dims[3];
    t.dims = {1, rows, heads * width};
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < width; ++c)
          t.as<float>()[(r * heads + h) * width + c] = from.as<float>()[(h * rows + r) * width + c];
  };
  for (Tensor &t : packed)
    pack(t);
  Tensor want = runOp("attention", in)[0];
  pack(want);
  AttrList heads;
  heads.set("q_num_heads", s.qHeads).set("kv_num_heads", s.kvHeads);
  EXPECT_EQ(runOp("attention", packed, heads)[0].bytes, want.bytes);
}

TEST(Attention, PresentIsPastThenNew) {
  std::mt19937 rng(4);
  Shape s{.past = 2};
  std::vector<Tensor> in = operands(s, rng);
  std::vector<Tensor> out = runOp("attention", in, {}, 3);
  ASSERT_EQ(out[1].dims, (std::vector<int64_t>{s.batch, s.kvHeads, s.total(), s.size}));
  int64_t row = s.size, head = 3; // the last (batch, head)
  const float *present = out[1].as<float>() + head * s.total() * row;
  EXPECT_EQ(present[0], in[4].as<float>()[head * s.past * row]);
  EXPECT_EQ(present[s.past * row], in[1].as<float>()[head * s.fresh * row]);
}

TEST(Attention, FullyMaskedRowsAreZero) {
  std::mt19937 rng(5);
  Shape s;
  std::vector<Tensor> in = operands(s, rng);
  in.push_back(zeros(DType::Bool, {s.queries, s.fresh}));
  AttrList attrs;
  attrs.set("qk_matmul_output_mode", 3);
  std::vector<Tensor> out = runRow(*plainRows().back(), in, attrs, 4); // the reference
  for (size_t k : {0, 3})
    for (int64_t i = 0; i < out[k].elements(); ++i)
      ASSERT_EQ(out[k].as<float>()[i], 0);
  for (float value : {0.5f, INFINITY}) { // weighted by 0, infinity would be NaN
    in[2].as<float>()[0] = value;
    for (const Kernel *row : plainRows()) {
      if (value == INFINITY && row == plainRows().back())
        continue; // the reference weights all
      Tensor y = runRow(*row, in, {})[0];
      for (int64_t i = 0; i < y.elements(); ++i)
        ASSERT_EQ(y.as<float>()[i], 0) << row->name;
    }
  }
}

TEST(Attention, PaddingHidesGarbage) {
  std::mt19937 rng(6);
  Shape s{.batch = 1, .queries = 2, .fresh = 6};
  std::vector<Tensor> in = operands(s, rng);
  in.push_back({});
  in.push_back({});
  in.push_back({});
  in.push_back(indices({4}));
  AttrList causal;
  causal.set("is_causal", 1);
  Tensor want = runOp("attention", in, causal)[0];
  for (int64_t h = 0; h < s.kvHeads; ++h) // keys and values 4 and 5
    for (int64_t j = 4; j < 6; ++j) {
      in[1].as<float>()[(h * 6 + j) * s.size] = NAN;
      in[2].as<float>()[(h * 6 + j) * s.width] = NAN;
    }
  EXPECT_EQ(runOp("attention", in, causal)[0].bytes, want.bytes);
}

TEST(Attention, RefusesWhatDoesNotFit) {
  auto t = [](std::vector<int64_t> dims) { return zeros(DType::F32, std::move(dims)); };
  EXPECT_THAT(refusal("attention", {t({1, 3, 2, 4}), t({1, 2, 2, 4}), t({1, 2, 2, 4})}),
              testing::HasSubstr("multiple of key heads"));
  EXPECT_THAT(refusal("attention", {t({1, 2, 2, 4}), t({1, 2, 2, 5}), t({1, 2, 2, 4})}),
              testing::HasSubstr("dim 3 of operand 1 must be 4"));
  EXPECT_THAT(refusal("attention", {t({1, 2, 8}), t({1, 2, 8}), t({1, 2, 8})}),
              testing::HasSubstr("q_num_heads"));
  EXPECT_THAT(refusal("attention", {t({1, 2, 2, 4}), t({1, 2, 3, 4}), t({1, 2, 3, 4}), t({2, 4})}),
              testing::HasSubstr("attn_mask must broadcast"));
}

} // namespace
} // namespace dspark::test
