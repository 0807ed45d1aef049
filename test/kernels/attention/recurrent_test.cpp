// rotary_embedding, linear_attention, causal_conv_with_state and swiglu: against their definitions, and the
// property each exists for (angles, a state that may be cut anywhere, a convolution that may be cut
// anywhere).
#include "kernels/common/element.h"
#include "test/kernels/kernel_case.h"
#include <cmath>
#include <gmock/gmock.h>

namespace dspark::test {
namespace {

Tensor slice(Tensor &t, int axis, int64_t begin, int64_t end) {
  std::vector<int64_t> dims = t.dims;
  dims[size_t(axis)] = end - begin;
  Tensor result = zeros(t.type, dims);
  int64_t inner = 1, outer = 1;
  for (int i = 0; i < int(dims.size()); ++i)
    (i < axis ? outer : inner) *= i == axis ? 1 : dims[size_t(i)];
  for (int64_t o = 0; o < outer; ++o)
    std::memcpy(result.as<float>() + o * (end - begin) * inner,
                t.as<float>() + (o * t.dims[size_t(axis)] + begin) * inner,
                size_t((end - begin) * inner) * 4);
  return result;
}

void expectNear(const float *a, const float *b, int64_t count, double tolerance) {
  for (int64_t i = 0; i < count; ++i)
    ASSERT_NEAR(a[i], b[i], tolerance) << "element " << i;
}

// cos and sin of `angles`, one row per position.
std::vector<Tensor> caches(std::vector<float> angles, int64_t rows) {
  auto half = int64_t(angles.size()) / rows;
  Tensor cos = floats(angles, {rows, half}), sin = cos;
  for (size_t i = 0; i < angles.size(); ++i)
    cos.as<float>()[i] = std::cos(angles[i]), sin.as<float>()[i] = std::sin(angles[i]);
  return {cos, sin};
}

TEST(RotaryEmbedding, RotatesPairsByTheAngleOfThePosition) {
  std::vector<Tensor> cache = caches({0, 0, 1.5707963f, 3.1415926f}, 2);
  Tensor ids = indices({1});
  ids.dims = {1, 1};
  Tensor x = floats({1, 2, 3, 4, 9}, {1, 1, 1, 5});
  AttrList attrs;
  attrs.set("rotary_embedding_dim", 4);
  // Pairs (1,3) by 90 degrees and (2,4) by 180; the fifth element passes through.
  expectNear(runOp("rotary_embedding", {x, cache[0], cache[1], ids}, attrs)[0].as<float>(),
             std::vector<float>{-3, -2, 1, -4, 9}.data(), 5, 1e-6);
  attrs.set("interleaved", 1);
  expectNear(runOp("rotary_embedding", {x, cache[0], cache[1], ids}, attrs)[0].as<float>(),
             std::vector<float>{-2, 1, -3, -4, 9}.data(), 5, 1e-6);
}

TEST(RotaryEmbedding, PositionsOutsideTheCacheStayInside) {
  std::vector<Tensor> cache = caches({0, 0}, 2);
  Tensor ids = indices({int64_t(1) << 60, -7});
  ids.dims = {1, 2};
  Tensor x = floats({1, 2, 3, 4}, {1, 1, 2, 2});
  expectNear(runOp("rotary_embedding", {x, cache[0], cache[1], ids})[0].as<float>(), x.as<float>(), 4, 0);
}

TEST(RotaryEmbedding, HalvesAreRotatedInF32AndRoundedOnce) {
  std::mt19937 rng(3);
  for (DType type : {DType::F16, DType::BF16})
    for (int64_t interleaved : {0, 1}) {
      std::vector<Tensor> in = {zeros(type, {2, 3, 5, 22}), zeros(type, {2, 5, 9}), zeros(type, {2, 5, 9})};
      for (Tensor &t : in)
        for (int64_t i = 0; i < t.elements(); ++i) {
          float v = std::uniform_real_distribution<float>(-1, 1)(rng);
          t.as<uint16_t>()[i] = type == DType::F16 ? F16(v).bits : BF16(v).bits;
        }
      AttrList attrs;
      attrs.set("rotary_embedding_dim", 18).set("interleaved", interleaved);
      Tensor want = runOp("rotary_embedding", in, attrs)[0];
      for (const Kernel *row : rowsOf("rotary_embedding"))
        EXPECT_EQ(runRow(*row, in, attrs)[0].bytes, want.bytes) << row->name;
    }
}

AttrList linearAttributes(const char *rule) {
  AttrList attrs;
  attrs.set("q_num_heads", 4).set("kv_num_heads", 2).set("update_rule", rule);
  return attrs;
}

TEST(LinearAttention, LinearRuleIsAttentionWithoutSoftmax) {
  std::mt19937 rng(1);
  constexpr int64_t kTokens = 5, kSize = 3, kWidth = 2;
  Tensor q = uniform({1, kTokens, 4 * kSize}, rng), k = uniform({1, kTokens, 2 * kSize}, rng),
         v = uniform({1, kTokens, 2 * kWidth}, rng);
  Tensor out = runOp("linear_attention", {q, k, v}, linearAttributes("linear"), 2)[0];
  for (int64_t t = 0; t < kTokens; ++t)
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t m = 0; m < kWidth; ++m) {
        double want = 0;
        for (int64_t j = 0; j <= t; ++j) {
          double score = 0;
          for (int64_t d = 0; d < kSize; ++d)
            score +=
                double(q.as<float>()[(t * 4 + h) * kSize + d]) * k.as<float>()[(j * 2 + h / 2) * kSize + d];
          want += score * v.as<float>()[(j * 2 + h / 2) * kWidth + m] / std::sqrt(double(kSize));
        }
        ASSERT_NEAR(out.as<float>()[(t * 4 + h) * kWidth + m], want, 1e-6);
      }
}

TEST(LinearAttention, TheStateCarriesOn) {
  std::mt19937 rng(2);
  std::vector<Tensor> in = {uniform({2, 6, 12}, rng), uniform({2, 6, 6}, rng), uniform({2, 6, 4}, rng), {},
                            uniform({2, 6, 2}, rng),  uniform({2, 6, 1}, rng)};
  AttrList attrs = linearAttributes("gated_delta");
  std::vector<Tensor> whole = runOp("linear_attention", in, attrs, 2), first = in, second = in;
  for (size_t i : {0, 1, 2, 4, 5})
    first[i] = slice(in[i], 1, 0, 4), second[i] = slice(in[i], 1, 4, 6);
  std::vector<Tensor> head = runOp("linear_attention", first, attrs, 2);
  second[3] = head[1];
  std::vector<Tensor> tail = runOp("linear_attention", second, attrs, 2);
  EXPECT_EQ(tail[1].bytes, whole[1].bytes);
  EXPECT_EQ(slice(whole[0], 1, 4, 6).bytes, tail[0].bytes);
}

TEST(LinearAttention, RefusesAMissingGate) {
  auto t = [](int64_t width) { return zeros(DType::F32, {1, 2, width}); };
  EXPECT_THAT(refusal("linear_attention", {t(4), t(2), t(2)}, linearAttributes("gated"), 2),
              testing::HasSubstr("decay"));
}

TEST(CausalConv, TheStateCarriesOn) {
  std::mt19937 rng(3);
  Tensor x = uniform({2, 3, 9}, rng), w = uniform({3, 1, 4}, rng), bias = uniform({3}, rng);
  AttrList attrs;
  attrs.set("activation", "silu");
  std::vector<Tensor> whole = runOp("causal_conv_with_state", {x, w, bias}, attrs, 2);
  std::vector<Tensor> head = runOp("causal_conv_with_state", {slice(x, 2, 0, 2), w, bias}, attrs, 2);
  std::vector<Tensor> tail = runOp("causal_conv_with_state", {slice(x, 2, 2, 9), w, bias, head[1]}, attrs, 2);
  EXPECT_EQ(slice(whole[0], 2, 2, 9).bytes, tail[0].bytes);
  EXPECT_EQ(whole[1].bytes, tail[1].bytes);
  // The first output sees one input and zeros.
  double sum = bias.as<float>()[0] + double(w.as<float>()[3]) * x.as<float>()[0];
  EXPECT_NEAR(whole[0].as<float>()[0], sum / (1 + std::exp(-sum)), 1e-6);
}

TEST(Swiglu, GatesTheSecondOperand) {
  AttrList attrs;
  attrs.setFloat("alpha", 2);
  Tensor y = runOp("swiglu", {floats({-1, 0, 3}, {3}), floats({5, 6, 7}, {3})}, attrs)[0];
  expectNear(y.as<float>(),
             std::vector<float>{float(-5 / (1 + std::exp(2.0))), 0, float(21 / (1 + std::exp(-6.0)))}.data(),
             3, 21 * 2.4e-7);
}

} // namespace
} // namespace dspark::test
