// pool and max_unpool against plain loops in f64.
#include "test/kernels/kernel_case.h"

namespace dspark {
namespace {

using namespace test;

struct Case {
  const char *kind;
  std::vector<int64_t> dims, kernel, stride, dilation, pads;
  bool ceil = false, countsPadding = false;
  int64_t channels() const { return dims[1]; }
};

Tensor toChannelsLast(const Tensor &t) {
  Tensor out = t;
  int64_t c = t.dims[1], pixels = t.elements() / std::max<int64_t>(t.dims[0] * c, 1);
  for (int64_t n = 0; n < t.dims[0]; ++n)
    for (int64_t i = 0; i < c; ++i)
      for (int64_t p = 0; p < pixels; ++p)
        out.as<float>()[(n * pixels + p) * c + i] = t.as<float>()[(n * c + i) * pixels + p];
  out.dims.erase(out.dims.begin() + 1);
  out.dims.push_back(c);
  return out;
}

// Rows for floats; byte_ops_test has the others.
std::vector<const Kernel *> floatRows() {
  std::vector<const Kernel *> rows = rowsOf("pool");
  std::erase_if(rows,
                [](const Kernel *row) { return std::string_view(row->name).starts_with("pool_bytes"); });
  return rows;
}

// Output (n * c, oy, ox) of a 2-D pool.
double expected(const Case &k, const Tensor &x, int64_t plane, int64_t oy, int64_t ox) {
  int64_t h = k.dims[2], w = k.dims[3], inside = 0, counted = 0;
  double best = -INFINITY, sum = 0, squares = 0;
  for (int64_t ky = 0; ky < k.kernel[0]; ++ky)
    for (int64_t kx = 0; kx < k.kernel[1]; ++kx) {
      int64_t iy = oy * k.stride[0] - k.pads[0] + ky * k.dilation[0],
              ix = ox * k.stride[1] - k.pads[1] + kx * k.dilation[1];
      counted += iy < h + k.pads[2] && ix < w + k.pads[3];
      if (iy < 0 || iy >= h || ix < 0 || ix >= w)
        continue;
      double v = double(x.as<float>()[(plane * h + iy) * w + ix]);
      ++inside;
      best = std::max(best, v);
      sum += v;
      squares += v * v;
    }
  std::string_view kind = k.kind;
  return kind == "max"  ? best
         : kind == "lp" ? std::sqrt(squares)
                        : sum / double(k.countsPadding ? counted : inside);
}

void check(const Case &k) {
  std::mt19937 rng(5);
  Tensor x = uniform(k.dims, rng);
  for (const Kernel *row : floatRows())
    for (bool isChannelsLast : {false, true}) {
      bool isGeneral = std::string_view(row->name) == "pool_reference";
      if (!isGeneral && (!isChannelsLast || std::string_view(k.kind) == "lp"))
        continue;
      AttrList attrs;
      attrs.set("kind", k.kind)
          .set("kernel_shape", k.kernel)
          .set("strides", k.stride)
          .set("dilations", k.dilation);
      attrs.set("pads", k.pads).set("ceil_mode", k.ceil).set("count_include_pad", k.countsPadding);
      attrs.set("layout", isChannelsLast ? "nhwc" : "nchw");
      std::vector<Tensor> in = {isChannelsLast ? toChannelsLast(x) : x};
      std::vector<Tensor> out = runRow(*row, in, attrs);
      ASSERT_EQ(out.size(), 1u);
      int64_t oh = out[0].dims[isChannelsLast ? 1 : 2], ow = out[0].dims[isChannelsLast ? 2 : 3],
              c = k.channels();
      for (int64_t plane = 0; plane < k.dims[0] * c; ++plane)
        for (int64_t p = 0; p < oh * ow; ++p) {
          int64_t at = isChannelsLast ? (plane / c * oh * ow + p) * c + plane % c : plane * oh * ow + p;
          double want = expected(k, x, plane, p / ow, p % ow);
          // One rounding per tap of numbers below 1, and the division.
          double bound = double(k.kernel[0] * k.kernel[1] + 2) / (1 << 24);
          ASSERT_NEAR(double(out[0].as<float>()[at]), want, bound) << row->name << " " << k.kind << " " << p;
        }
    }
}

TEST(Pool, KindsAndWindows) {
  for (const char *kind : {"max", "average", "lp"}) {
    check({kind, {2, 19, 9, 11}, {2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}});
    check({kind, {1, 64, 7, 12}, {3, 3}, {2, 1}, {1, 1}, {1, 1, 1, 1}});
    check({kind, {1, 33, 10, 10}, {3, 3}, {3, 2}, {1, 1}, {1, 0, 2, 1}, true});
    check({kind, {1, 5, 10, 13}, {2, 3}, {1, 2}, {2, 3}, {1, 2, 0, 3}, true, true});
    check({kind, {1, 40, 5, 6}, {3, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}, true, true});
  }
}

TEST(Pool, NanWinsAMaximum) {
  for (const Kernel *row : floatRows()) {
    std::vector<Tensor> in = {filled<float>(DType::F32, {1, 1, 3, 16}, [] { return 1.0f; })};
    in[0].as<float>()[16] = NAN;
    in[0].as<float>()[2] = INFINITY, in[0].as<float>()[16 + 2] = -INFINITY;
    AttrList attrs;
    attrs.set("kernel_shape", {1, 3}).set("layout", "nhwc");
    Tensor y = runRow(*row, in, attrs)[0];
    EXPECT_TRUE(std::isnan(y.as<float>()[0])) << row->name;
    EXPECT_EQ(y.as<float>()[1], 1.0f) << row->name;
    EXPECT_EQ(y.as<float>()[2], INFINITY) << row->name;
  }
}

TEST(Pool, IndicesAreThoseOfTheTensorAndUnpoolPutsThemBack) {
  std::vector<Tensor> in = {zeros(DType::F32, {1, 2, 4, 4})};
  for (int i = 0; i < 32; ++i)
    in[0].as<float>()[i] = float((i * 7) % 32);
  AttrList attrs;
  attrs.set("kernel_shape", {2, 2}).set("strides", {2, 2});
  std::vector<Tensor> out = runRow(*rowsOf("pool").back(), in, attrs, 2);
  ASSERT_EQ(out.size(), 2u);
  for (int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(in[0].as<float>()[out[1].as<int64_t>()[i]], out[0].as<float>()[i]);
  Tensor back = runRow(*rowsOf("max_unpool")[0], out, attrs)[0];
  EXPECT_EQ(back.dims, in[0].dims);
  for (int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(back.as<float>()[out[1].as<int64_t>()[i]], out[0].as<float>()[i]);
}

// Indices come from a file; those that name no element are left out.
TEST(Pool, UnpoolIgnoresIndicesOutside) {
  std::vector<Tensor> in = {filled<float>(DType::F32, {1, 1, 1, 2}, [] { return 5.0f; }),
                            zeros(DType::I64, {1, 1, 1, 2})};
  in[1].as<int64_t>()[0] = INT64_MIN;
  in[1].as<int64_t>()[1] = 1000;
  AttrList attrs;
  attrs.set("kernel_shape", {2, 2}).set("strides", {2, 2});
  Tensor y = runRow(*rowsOf("max_unpool")[0], in, attrs)[0];
  for (int64_t i = 0; i < y.elements(); ++i)
    EXPECT_EQ(y.as<float>()[i], 0.0f);
}

} // namespace
} // namespace dspark
