// conv and conv_transpose: every row and ISA level against f64 sums in NCHW, over layouts, packings, groups,
// strides, dilations and paddings. The tolerance is that of a sum of K f32 products: (K + 4) eps sum|x w|;
// with packed bf16, whose products are exact, of x and w as they are rounded.
#include "kernels/common/bf16_speed.h"
#include "kernels/common/numeric.h"
#include "runtime/format/PackedLayout.h"
#include "test/kernels/kernel_case.h"

namespace dspark {
namespace {

using namespace test;

constexpr double kEps = 1.0 / (1 << 24);

struct Case {
  int64_t batch, inputs, outputs, group;
  std::vector<int64_t> in, kernel, stride, dilation, padBegin, padEnd;
  const char *autoPad = "NOTSET";
  std::vector<int64_t> outputPadding = {};
  bool isTransposed = false;

  /// Filters of a transposed convolution lie side by side.
  bool tilesOutput() const { return kernel == stride && group == 1 && outputs < 16 && kernel.size() > 1; }
};

int64_t count(const std::vector<int64_t> &dims) {
  int64_t n = 1;
  for (int64_t d : dims)
    n *= d;
  return n;
}

// Coordinates of flat index i.
std::vector<int64_t> unflatten(int64_t i, const std::vector<int64_t> &dims) {
  std::vector<int64_t> at(dims.size());
  for (size_t d = dims.size(); d-- > 0; i /= dims[d])
    at[d] = i % dims[d];
  return at;
}

// N, C, spatial -> N, spatial, C.
Tensor channelsLast(const Tensor &t) {
  Tensor out = t;
  int64_t pixels = count({t.dims.begin() + 2, t.dims.end()}), c = t.dims[1];
  for (int64_t n = 0; n < t.dims[0]; ++n)
    for (int64_t i = 0; i < c; ++i)
      for (int64_t p = 0; p < pixels; ++p)
        out.as<float>()[(n * pixels + p) * c + i] = t.as<float>()[(n * c + i) * pixels + p];
  out.dims.erase(out.dims.begin() + 1);
  out.dims.push_back(c);
  return out;
}

struct Sums {
  std::vector<double> value, magnitude; // N, C, spatial
};

// Visits every (input pixel, tap, output pixel) that belong together: o * stride = i + pad - tap * dilation,
// with input and output exchanged for a transposed convolution.
Sums reference(const Case &c, const Tensor &x, const Tensor &w, const std::vector<int64_t> &out,
               const std::vector<int64_t> &pad) {
  int64_t inPixels = count(c.in), outPixels = count(out), taps = count(c.kernel), rank = int64_t(c.in.size());
  Sums sums;
  sums.value.assign(size_t(c.batch * c.outputs * outPixels), 0);
  sums.magnitude = sums.value;
  const std::vector<int64_t> &wide = c.isTransposed ? out : c.in, &narrow = c.isTransposed ? c.in : out;
  for (int64_t p = 0; p < count(narrow); ++p)
    for (int64_t tap = 0; tap < taps; ++tap) {
      std::vector<int64_t> at = unflatten(p, narrow), k = unflatten(tap, c.kernel);
      int64_t other = 0;
      bool isInside = true;
      for (int64_t d = 0; d < rank; ++d) {
        int64_t i = at[d] * c.stride[d] - pad[d] + k[d] * c.dilation[d];
        isInside = isInside && i >= 0 && i < wide[d];
        other = other * wide[d] + i;
      }
      if (!isInside)
        continue;
      int64_t inPixel = c.isTransposed ? p : other, outPixel = c.isTransposed ? other : p;
      int64_t perGroupIn = c.inputs / c.group, perGroupOut = c.outputs / c.group;
      for (int64_t n = 0; n < c.batch; ++n)
        for (int64_t o = 0; o < c.outputs; ++o)
          for (int64_t i = 0; i < perGroupIn; ++i) {
            int64_t channel = o / perGroupOut * perGroupIn + i;
            int64_t weight = c.isTransposed ? (channel * perGroupOut + o % perGroupOut) * taps + tap
                                            : (o * perGroupIn + i) * taps + tap;
            double term = double(x.as<float>()[(n * c.inputs + channel) * inPixels + inPixel]) *
                          double(w.as<float>()[weight]);
            size_t y = size_t((n * c.outputs + o) * outPixels + outPixel);
            sums.value[y] += term;
            sums.magnitude[y] += std::fabs(term);
          }
    }
  return sums;
}

struct Form {
  bool isChannelsLast;
  const char *packed; // "" for row-major weights
  bool bias, residual;

  bool isBf16() const { return std::string_view(packed) == "bf16"; }
};

Tensor packed(const char *layout, const ConvWeight &weight, const Tensor &w) {
  Tensor made = w;
  made.bytes.assign(*packedBytes(layout, weight), std::byte(0xff));
  EXPECT_TRUE(packWeight(layout, weight, w.bytes, made.bytes).isOk());
  return made;
}

Tensor rounded(Tensor t) {
  for (int64_t i = 0; i < t.elements(); ++i)
    t.as<float>()[i] = bf16ToF32(f32ToBf16(t.as<float>()[i]));
  return t;
}

void check(const Kernel &row, const Case &c, const Form &form) {
  std::mt19937 rng(7);
  std::vector<int64_t> xDims = {c.batch, c.inputs},
                       wDims = {c.isTransposed ? c.inputs : c.outputs,
                                c.isTransposed ? c.outputs / c.group : c.inputs / c.group};
  xDims.insert(xDims.end(), c.in.begin(), c.in.end());
  wDims.insert(wDims.end(), c.kernel.begin(), c.kernel.end());
  Tensor x = uniform(xDims, rng), w = uniform(wDims, rng);
  AttrList attrs;
  std::vector<int64_t> pads = c.padBegin;
  pads.insert(pads.end(), c.padEnd.begin(), c.padEnd.end());
  attrs.set("strides", c.stride)
      .set("dilations", c.dilation)
      .set("group", c.group)
      .set("auto_pad", c.autoPad);
  if (std::string_view(c.autoPad) == "NOTSET")
    attrs.set("pads", pads);
  if (!c.outputPadding.empty())
    attrs.set("output_padding", c.outputPadding);
  attrs.set("layout", form.isChannelsLast ? "nhwc" : "nchw")
      .set("packed", form.packed)
      .set("activation", "relu");
  const char *op = c.isTransposed ? "conv_transpose" : "conv";

  std::vector<Tensor> in(4);
  in[0] = form.isChannelsLast ? channelsLast(x) : x;
  in[1] = w;
  if (*form.packed)
    in[1] = packed(form.packed, {c.group, c.inputs, c.outputs, count(c.kernel), c.isTransposed}, w);
  if (form.bias)
    in[2] = uniform({c.outputs}, rng);
  std::vector<Tensor> shape = inferResults(op, in, attrs, 1);
  ASSERT_EQ(shape.size(), 1u);
  std::vector<int64_t> yDims = shape[0].dims;
  if (form.isChannelsLast) {
    yDims.insert(yDims.begin() + 1, yDims.back());
    yDims.pop_back();
  }
  Tensor residual = uniform(yDims, rng);
  if (form.residual)
    in[3] = form.isChannelsLast ? channelsLast(residual) : residual;

  // SAME paddings are known from the sizes alone.
  std::vector<int64_t> out(yDims.begin() + 2, yDims.end()), pad = c.padBegin;
  for (size_t d = 0; d < out.size() && std::string_view(c.autoPad).starts_with("SAME"); ++d) {
    int64_t small = c.isTransposed ? c.in[d] : out[d], large = c.isTransposed ? out[d] : c.in[d];
    int64_t total =
        std::max<int64_t>((small - 1) * c.stride[d] + (c.kernel[d] - 1) * c.dilation[d] + 1 - large, 0);
    pad[d] = std::string_view(c.autoPad) == "SAME_UPPER" ? total / 2 : total - total / 2;
  }
  Sums sums = form.isBf16() ? reference(c, rounded(x), rounded(w), out, pad) : reference(c, x, w, out, pad);
  std::vector<Tensor> results = runRow(row, in, attrs);
  ASSERT_EQ(results.size(), 1u);
  const Tensor &y = results[0];
  int64_t pixels = count(out), depth = count(c.kernel) * c.inputs / c.group;
  for (int64_t i = 0; i < y.elements(); ++i) {
    int64_t n = i / (pixels * c.outputs), o = i / pixels % c.outputs, p = i % pixels;
    double want = sums.value[size_t(i)] + (form.bias ? double(in[2].as<float>()[o]) : 0) +
                  (form.residual ? double(residual.as<float>()[i]) : 0);
    double bound = double(depth + 4) * kEps * (sums.magnitude[size_t(i)] + std::fabs(want) + 1);
    int64_t at = form.isChannelsLast ? (n * pixels + p) * c.outputs + o : i;
    ASSERT_NEAR(double(y.as<float>()[at]), std::max(want, 0.0), bound)
        << row.name << (form.isChannelsLast ? " nhwc" : " nchw") << " packed " << form.packed << " element "
        << i;
  }
}

bool isBf16(const Kernel &row) { return std::string_view(row.name).starts_with("conv_bf16"); }

// Without f32 by tiles, which do not take every shape (gemm_tiles_test.cpp).
std::vector<const Kernel *> denseRows(const char *op) {
  std::vector<const Kernel *> rows = rowsOf(op);
  std::erase_if(rows, [](const Kernel *row) {
    if (row->isa == Isa::Amx)
      return !isBf16(*row) || !runsTiles();
    return std::string_view(row->name) == "conv_bf16_avx512" && !multipliesBf16();
  });
  return rows;
}

void checkAll(const Case &c) {
  bool isDepthwise = c.group == c.inputs && c.outputs == c.inputs && c.inputs > 1 && !c.isTransposed;
  for (const Kernel *row : denseRows(c.isTransposed ? "conv_transpose" : "conv")) {
    std::string_view name = row->name;
    bool isReference = name.find("reference") != name.npos,
         needsDepthwise = name.find("depthwise") != name.npos;
    bool needsBlocks = name.find("blocks") != name.npos;
    bool isWinograd = name.find("winograd") != name.npos; // has its own bound, in conv_winograd_test
    if ((needsDepthwise && !isDepthwise) || (needsBlocks && !c.tilesOutput()) || isWinograd)
      continue;
    for (bool isChannelsLast : {false, true})
      for (const char *packed : {"", "panel16", "bf16", "depthwise"}) {
        std::string_view layout = packed;
        bool fits = isBf16(*row)            ? layout == "bf16" && isChannelsLast
                    : layout.empty()        ? true
                    : layout == "depthwise" ? needsDepthwise
                                            : layout == "panel16" && !isReference && !needsDepthwise;
        if (!fits)
          continue;
        check(*row, c, {isChannelsLast, packed, true, !needsBlocks});
        check(*row, c, {isChannelsLast, packed, false, false});
      }
  }
}

TEST(Conv, Pointwise) {
  checkAll({2, 20, 37, 1, {5, 7}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}});
  checkAll({1, 300, 20, 1, {3, 13}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}});
  checkAll({1, 24, 16, 1, {6, 5}, {1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}});
  checkAll({1, 800, 24, 1, {4, 7}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}); // half a panel, a long sum
}

TEST(Conv, Windows) {
  checkAll({1, 3, 16, 1, {17, 23}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}});
  checkAll({1, 33, 40, 1, {9, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
  checkAll({2, 40, 8, 1, {8, 9}, {3, 5}, {2, 1}, {1, 2}, {0, 3}, {2, 4}});
  checkAll({1, 5, 7, 1, {6, 4}, {7, 7}, {1, 1}, {1, 1}, {3, 3}, {3, 3}});
  checkAll({1, 2, 9, 1, {30}, {16}, {8}, {1}, {0}, {0}});
  checkAll({1, 1, 26, 1, {576}, {256}, {128}, {1}, {64}, {64}});
  checkAll({3, 40, 17, 1, {9}, {3}, {2}, {1}, {1}, {1}});
  checkAll({1, 4, 6, 1, {5, 6, 7}, {3, 2, 3}, {2, 1, 1}, {1, 2, 1}, {1, 0, 1}, {0, 1, 1}});
}

TEST(Conv, Groups) {
  checkAll({1, 12, 8, 4, {6, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
  checkAll({1, 8, 16, 8, {6, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
  checkAll({1, 70, 70, 2, {4, 5}, {1, 3}, {1, 1}, {1, 1}, {0, 1}, {0, 1}});
}

TEST(Conv, Depthwise) {
  for (int64_t channels : {2, 8, 19, 64, 100}) {
    checkAll({1, channels, channels, channels, {9, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
    checkAll({2, channels, channels, channels, {11, 20}, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 2}});
  }
  checkAll({1, 33, 33, 33, {8, 30}, {3, 3}, {2, 1}, {1, 2}, {1, 1}, {1, 3}});
  checkAll({1, 24, 24, 24, {7, 41}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}});
  checkAll({1, 40, 40, 40, {7, 33}, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}});
  // Rows longer than a strip; widths that leave blocks of every size.
  checkAll({1, 100, 100, 100, {7, 45}, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}});
  checkAll({1, 200, 200, 200, {9, 62}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}});
  checkAll({1, 72, 72, 72, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
  checkAll({1, 16, 16, 16, {40}, {7}, {1}, {1}, {6}, {0}});
  checkAll({1, 5, 5, 5, {2, 2}, {7, 7}, {1, 1}, {1, 1}, {3, 3}, {3, 3}});
}

// An image has the same bits alone, beside others, and however rows and channels are dealt to threads.
TEST(Conv, DepthwiseBitsDoNotDependOnBatchOrThreads) {
  std::mt19937 rng(3);
  for (const Kernel *row : rowsOf("conv"))
    for (int64_t stride : {1, 2}) {
      if (std::string_view(row->name).find("depthwise") == std::string_view::npos)
        continue;
      std::vector<Tensor> in = {uniform({4, 19, 61, 150}, rng), uniform({150, 1, 3, 3}, rng)};
      AttrList attrs;
      attrs.set("layout", "nhwc")
          .set("pads", {1, 1, 1, 1})
          .set("group", 150)
          .set("strides", {stride, stride});
      std::vector<Tensor> one = in;
      one[0].dims[0] = 1;
      one[0].bytes.resize(one[0].bytes.size() / 4);
      Tensor all = runRow(*row, in, attrs)[0], first = runRow(*row, one, attrs, 1, 1)[0];
      EXPECT_EQ(std::memcmp(all.bytes.data(), first.bytes.data(), first.bytes.size()), 0) << row->name;
    }
}

TEST(Conv, AutoPad) {
  for (const char *mode : {"SAME_UPPER", "SAME_LOWER", "VALID"}) {
    checkAll({1, 4, 5, 1, {7, 10}, {4, 3}, {2, 3}, {1, 1}, {0, 0}, {0, 0}, mode});
    checkAll({1, 6, 6, 6, {7, 10}, {4, 3}, {2, 1}, {1, 2}, {0, 0}, {0, 0}, mode});
  }
}

TEST(Conv, EmptyBatch) { checkAll({0, 4, 5, 1, {7, 10}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}); }

Case transposed(Case c) {
  c.isTransposed = true;
  return c;
}

TEST(ConvTranspose, Forms) {
  checkAll(transposed({1, 24, 24, 1, {5, 7}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}));
  checkAll(transposed({1, 24, 1, 1, {5, 7}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}));
  checkAll(transposed({2, 300, 3, 1, {5, 7}, {3, 2}, {3, 2}, {1, 1}, {0, 0}, {0, 0}}));
  checkAll(transposed({2, 7, 20, 1, {5, 4}, {4, 3}, {2, 2}, {1, 1}, {1, 0}, {1, 2}}));
  checkAll(transposed({1, 8, 6, 2, {5, 4}, {3, 3}, {2, 3}, {2, 1}, {1, 1}, {1, 1}, "NOTSET", {1, 2}}));
  checkAll(transposed({1, 3, 4, 1, {6}, {2}, {5}, {1}, {0}, {0}})); // outputs that no tap reaches
  checkAll(transposed({1, 3, 4, 1, {3, 2, 4}, {2, 3, 2}, {1, 2, 2}, {1, 1, 1}, {0, 1, 0}, {1, 0, 0}}));
  checkAll(transposed({1, 3, 4, 1, {4, 5}, {3, 3}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, "SAME_UPPER"}));
  checkAll(transposed({1, 3, 4, 1, {4, 5}, {3, 3}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, "SAME_LOWER"}));
}

// A pixel must have the same bits however many are computed beside it.
TEST(Conv, PixelsDoNotDependOnTheirNumber) {
  std::mt19937 rng(3);
  for (const Kernel *row : denseRows("conv"))
    for (int64_t channels : {3, 40}) {
      std::string_view name = row->name;
      if (name.find("depthwise") != name.npos || name.find("winograd") != name.npos)
        continue;
      std::vector<Tensor> in = {uniform({4, 9, 21, channels}, rng), uniform({18, channels, 3, 3}, rng)};
      AttrList attrs;
      attrs.set("layout", "nhwc").set("pads", {1, 1, 1, 1});
      if (isBf16(*row)) {
        in[1] = packed("bf16", {1, channels, 18, 9}, in[1]);
        attrs.set("packed", "bf16");
      }
      std::vector<Tensor> one = in;
      one[0].dims[0] = 1;
      one[0].bytes.resize(one[0].bytes.size() / 4);
      Tensor all = runRow(*row, in, attrs)[0], first = runRow(*row, one, attrs, 1, 1)[0];
      EXPECT_EQ(std::memcmp(all.bytes.data(), first.bytes.data(), first.bytes.size()), 0) << row->name;
    }
}

// Infinities and NaN of a pixel reach the pixels whose windows hold it, and no others.
TEST(Conv, InfinitiesStayInTheirWindowsInBf16) {
  std::mt19937 rng(5);
  for (const Kernel *row : denseRows("conv")) {
    if (!isBf16(*row))
      continue;
    std::vector<Tensor> in = {uniform({1, 8, 9, 5}, rng), uniform({7, 5, 3, 3}, rng)};
    in[1] = packed("bf16", {1, 5, 7, 9}, in[1]);
    in[0].as<float>()[(3 * 9 + 4) * 5 + 4] = INFINITY;
    in[0].as<float>()[(3 * 9 + 4) * 5 + 3] = __builtin_bit_cast(float, 0x7f800001); // no bf16 has its payload
    AttrList attrs;
    attrs.set("layout", "nhwc").set("packed", "bf16").set("pads", {1, 1, 1, 1});
    Tensor y = runRow(*row, in, attrs)[0];
    for (int64_t i = 0; i < y.elements(); ++i) {
      int64_t line = i / 7 / 9, column = i / 7 % 9;
      bool isReached = std::abs(line - 3) <= 1 && std::abs(column - 4) <= 1;
      EXPECT_EQ(std::isnan(y.as<float>()[i]), isReached) << row->name << " " << i;
    }
  }
}

TEST(Conv, Bf16NeedsChannelsLast) {
  Tensor x = zeros(DType::F32, {1, 4, 5, 6}), w = zeros(DType::F32, {8, 4, 3, 3});
  AttrList attrs;
  attrs.set("packed", "bf16");
  EXPECT_EQ(refusal("conv", {x, w}, attrs),
            "packed bf16: expected f32 in layout nhwc, found f32[1, 4, 5, 6]");
}

} // namespace
} // namespace dspark
