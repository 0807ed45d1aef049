// Quantisers against ONNX's formulas written out per element, for every row, type and granularity.
#include "kernels/common/numeric.h"
#include "test/kernels/kernel_case.h"
#include <cmath>
#include <gmock/gmock.h>

namespace dspark::test {
namespace {

struct Layout {
  std::vector<int64_t> x, scale;
  int64_t axis, block;
};
const Layout kLayouts[] = {{{40001}, {}, 1, 0},       {{5, 7}, {1}, 1, 0},          {{3, 5, 700}, {5}, 1, 0},
                           {{300, 70}, {70}, -1, 0},  {{4, 70}, {4}, 0, 0},         {{6, 100}, {6, 4}, 1, 32},
                           {{10, 33}, {4, 33}, 0, 3}, {{2, 9, 5}, {2, 3, 5}, 1, 4}, {{0, 3}, {3}, 1, 0},
                           {{20, 40, 30}, {30}, 2, 0}};

/// The index of the scale that belongs to element k, straight from the definition.
int64_t scaleIndex(const Layout &l, int64_t k) {
  int64_t count = 1;
  for (int64_t d : l.scale)
    count *= d;
  if (l.block == 0 && count == 1)
    return 0;
  size_t axis = size_t(l.axis < 0 ? l.axis + int64_t(l.x.size()) : l.axis);
  std::vector<int64_t> index(l.x.size());
  for (size_t i = l.x.size(); i-- > 0; k /= l.x[i])
    index[i] = k % l.x[i];
  if (l.block == 0)
    return index[axis];
  int64_t at = 0;
  for (size_t i = 0; i < l.x.size(); ++i)
    at = at * l.scale[i] + (i == axis ? index[i] / l.block : index[i]);
  return at;
}

std::vector<double> values(const Tensor &t) {
  std::vector<double> out(size_t(t.elements()));
  loadAsF64(t.type, t.bytes.data(), 0, t.elements(), out.data());
  return out;
}
Tensor make(DType type, const std::vector<int64_t> &dims, auto &&draw) {
  Tensor t = zeros(type, dims);
  std::vector<double> v(size_t(t.elements()));
  for (double &x : v)
    x = draw();
  storeFromF64(type, t.bytes.data(), 0, t.elements(), v.data());
  return t;
}
AttrList attrsOf(const Layout &l) {
  AttrList attrs;
  attrs.set("axis", l.axis).set("block_size", l.block);
  return attrs;
}
bool takes(const Kernel &row, std::vector<Tensor> &in, DType out, const AttrList &attrs) {
  std::vector<TensorView> views;
  for (Tensor &t : in)
    views.push_back(t.view());
  TensorView result{nullptr, nullptr, 0, out};
  KernelCall call{views, {&result, 1}, attrs.view(), nullptr, nullptr};
  return !row.accepts || row.accepts(call);
}

const DType kQuantized[] = {
    DType::U8, DType::I8,       DType::U16,        DType::I16,    DType::U4,         DType::I4,    DType::U2,
    DType::I2, DType::F8E4M3FN, DType::F8E4M3FNUZ, DType::F8E5M2, DType::F8E5M2FNUZ, DType::F4E2M1};

TEST(QuantizeLinear, EveryRowTypeAndGranularity) {
  std::mt19937 rng(1);
  std::uniform_real_distribution<double> unit(0, 1);
  for (const Kernel *row : rowsOf("quantize_linear"))
    for (DType to : kQuantized)
      for (const Layout &l : kLayouts) {
        double range = isInteger(to) ? std::ldexp(1.0, dtypeBits(to)) : 12;
        // Halves are common, so that ties are met; some values saturate.
        std::vector<Tensor> in = {
            make(DType::F32, l.x, [&] { return std::round(range * 1.5 * (unit(rng) - 0.4)) / 2; }),
            make(DType::F32, l.scale, [&] { return unit(rng) < 0.5 ? 0.5 : 0.3; }),
            make(to, l.scale, [&] { return isInteger(to) ? std::floor(unit(rng) * 2) : 0; })};
        AttrList attrs = attrsOf(l);
        if (!takes(*row, in, to, attrs))
          continue;
        Tensor out = runRow(*row, in, attrs)[0];
        std::vector<double> x = values(in[0]), s = values(in[1]), z = values(in[2]), y = values(out);
        double low = isSigned(to) ? -std::ldexp(1.0, dtypeBits(to) - 1) : 0,
               high = low + std::ldexp(1.0, dtypeBits(to)) - 1;
        for (int64_t k = 0; k < out.elements(); k += out.elements() > 5000 ? 7 : 1) {
          size_t i = size_t(scaleIndex(l, k));
          float quotient = float(x[size_t(k)]) / float(s[i]);
          double expected = isInteger(to)
                                ? std::min(std::max(std::nearbyint(double(quotient)) + z[i], low), high)
                                : decodeSmall(smallFloat(to), encodeSmall(smallFloat(to), quotient, true));
          ASSERT_EQ(y[size_t(k)], expected) << row->name << " " << dtypeName(to) << " " << k;
        }
      }
}

TEST(QuantizeLinear, ExtremesSaturate) {
  for (const Kernel *row : rowsOf("quantize_linear")) {
    float x[] = {INFINITY, -INFINITY, NAN, 3e38f, -3e38f, 0.5f, 1.5f, -0.5f, 254.5f, 2147483648.0f};
    uint8_t expected[] = {255, 0, 0, 255, 0, 0, 2, 0, 254, 255};
    int next = 0;
    std::vector<Tensor> in = {filled<float>(DType::F32, {10}, [&] { return x[next++]; }),
                              filled<float>(DType::F32, {}, [] { return 1; })};
    Tensor out = runRow(*row, in, AttrList())[0];
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(out.as<uint8_t>()[i], expected[i]) << row->name << " of " << x[i];
  }
}

TEST(QuantizeLinear, PrecisionRoundsTheQuotient) {
  // 2049 has no f16: with f16 precision it is 2048, and 2048 / 16 = 128 instead of 128.06.
  AttrList attrs;
  attrs.set("precision", int64_t(DType::F16)).set("output_dtype", int64_t(DType::I16));
  std::vector<Tensor> in = {filled<float>(DType::F32, {1}, [] { return 2049; }),
                            filled<float>(DType::F32, {}, [] { return 0.5f; })};
  for (const Kernel *row : rowsOf("quantize_linear"))
    if (takes(*row, in, DType::I16, attrs))
      EXPECT_EQ(*runRow(*row, in, attrs)[0].as<int16_t>(), 4096) << row->name;
}

TEST(DequantizeLinear, EveryRowTypeAndGranularity) {
  std::mt19937 rng(2);
  std::uniform_real_distribution<double> unit(0, 1);
  std::vector<DType> types(std::begin(kQuantized), std::end(kQuantized));
  types.push_back(DType::I32);
  for (const Kernel *row : rowsOf("dequantize_linear"))
    for (DType from : types)
      for (DType to : {DType::F32, DType::F16, DType::BF16})
        for (const Layout &l : kLayouts) {
          double range = isInteger(from) ? std::ldexp(1.0, std::min(dtypeBits(from), 20)) : 12;
          std::vector<Tensor> in = {
              make(from, l.x, [&] { return range * (unit(rng) - (isSigned(from) ? 0.5 : 0)); }),
              make(to, l.scale, [&] { return unit(rng) / 16; }),
              make(from, l.scale, [&] { return isInteger(from) ? std::floor(2 * unit(rng)) : 0; })};
          AttrList attrs = attrsOf(l);
          if (!takes(*row, in, to, attrs))
            continue;
          Tensor out = runRow(*row, in, attrs)[0];
          std::vector<double> x = values(in[0]), s = values(in[1]), z = values(in[2]), y = values(out);
          for (int64_t k = 0; k < out.elements(); k += out.elements() > 5000 ? 7 : 1) {
            size_t i = size_t(scaleIndex(l, k));
            float product = float(x[size_t(k)] - z[i]) * float(s[i]);
            double expected = to == DType::F32
                                  ? product
                                  : decodeSmall(smallFloat(to), encodeSmall(smallFloat(to), product, false));
            ASSERT_EQ(y[size_t(k)], expected) << row->name << " " << dtypeName(from);
          }
        }
}

TEST(DynamicQuantizeLinear, EveryRow) {
  std::mt19937 rng(3);
  std::uniform_real_distribution<float> draw(-3, 7);
  for (const Kernel *row : rowsOf("dynamic_quantize_linear"))
    for (int64_t n : {1, 7, 16384, 100003}) {
      std::vector<Tensor> in = {filled<float>(DType::F32, {n}, [&] { return draw(rng); })};
      std::vector<Tensor> out = runRow(*row, in, AttrList(), 3);
      float low = 0, high = 0;
      for (int64_t i = 0; i < n; ++i) {
        low = std::min(low, in[0].as<float>()[i]);
        high = std::max(high, in[0].as<float>()[i]);
      }
      float scale = (high - low) / 255.0f;
      float zero = std::nearbyint(std::min(255.0f, std::max(0.0f, -low / scale)));
      EXPECT_EQ(*out[1].as<float>(), scale);
      EXPECT_EQ(*out[2].as<uint8_t>(), zero);
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(out[0].as<uint8_t>()[i],
                  std::min(255.0f, std::max(0.0f, std::nearbyint(in[0].as<float>()[i] / scale) + zero)));
    }
}

TEST(DynamicQuantizeLinear, AllZerosAsOnnxruntime) {
  for (const Kernel *row : rowsOf("dynamic_quantize_linear")) {
    std::vector<Tensor> in = {zeros(DType::F32, {5})};
    std::vector<Tensor> out = runRow(*row, in, AttrList(), 3);
    EXPECT_EQ(*out[1].as<float>(), 1.0f);
    EXPECT_EQ(*out[2].as<uint8_t>(), 0);
    EXPECT_EQ(out[0].as<uint8_t>()[4], 0);
  }
}

TEST(QuantShape, Refuses) {
  auto error = [](const char *op, std::vector<TensorInfo> in, const AttrList &attrs) {
    InferContext ctx;
    ctx.in = in;
    ctx.attrs = attrs.view();
    ctx.out.resize(1);
    EXPECT_EQ(findOp(op)->infer(ctx), InferStatus::Error);
    return ctx.error;
  };
  auto info = [](DType type, std::vector<Dim> dims) { return TensorInfo::make(type, std::move(dims)); };
  AttrList none, block, type;
  block.set("block_size", 4).set("axis", int64_t(0));
  type.set("output_dtype", int64_t(DType::I8));
  TensorInfo x = info(DType::F32, {8, 3}), scalar = info(DType::F32, {});
  EXPECT_THAT(error("quantize_linear", {x, info(DType::F32, {4})}, none),
              testing::HasSubstr("dim 0 of operand 1"));
  EXPECT_THAT(error("quantize_linear", {x, info(DType::F32, {3, 3})}, block),
              testing::HasSubstr("must be 2"));
  EXPECT_THAT(error("quantize_linear", {x, scalar, info(DType::U8, {})}, type),
              testing::HasSubstr("must have type i8"));
  EXPECT_THAT(error("quantize_linear", {info(DType::F64, {2}), scalar}, none),
              testing::HasSubstr("operand 0"));
  EXPECT_THAT(error("dequantize_linear", {x, scalar}, none), testing::HasSubstr("a quantised type"));
  EXPECT_THAT(error("dequantize_linear", {info(DType::U8, {2}), scalar, info(DType::I8, {})}, none),
              testing::HasSubstr("must have type i8"));
  EXPECT_THAT(error("dequantize_linear", {info(DType::U8, {2}), info(DType::F8E8M0, {})}, none),
              testing::HasSubstr("output_dtype"));
}

} // namespace
} // namespace dspark::test
