// Integer convolutions are exact: sums of x and w without their zero points, padding counting as the zero
// point.
#include "runtime/format/PackedLayout.h"
#include "test/kernels/byte_tensor.h"

namespace dspark {
namespace {

using namespace test;

struct Shape {
  int64_t n = 2, c, o, group, h = 6, w = 9, k = 3;
  int64_t outH() const { return (h + 2 - k) / 2 + 1; } // stride 2 x 1, pads 1
  int64_t outW() const { return w + 2 - k + 1; }
};

int64_t sumAt(const Shape &s, const Tensor &x, int64_t xZero, const Tensor &w, const Tensor &wZero,
              int64_t i) {
  int64_t ow = i % s.outW(), oh = i / s.outW() % s.outH(), o = i / (s.outW() * s.outH()) % s.o;
  int64_t n = i / (s.outW() * s.outH() * s.o), per = s.c / s.group, sum = 0;
  for (int64_t c = 0; c < per; ++c)
    for (int64_t ky = 0; ky < s.k; ++ky)
      for (int64_t kx = 0; kx < s.k; ++kx) {
        int64_t ih = oh * 2 - 1 + ky, iw = ow - 1 + kx, channel = o / (s.o / s.group) * per + c;
        if (ih >= 0 && ih < s.h && iw >= 0 && iw < s.w)
          sum += (byteAt(x, ((n * s.c + channel) * s.h + ih) * s.w + iw) - xZero) *
                 (byteAt(w, ((o * per + c) * s.k + ky) * s.k + kx) -
                  byteAt(wZero, wZero.elements() == 1 ? 0 : o));
      }
  return sum;
}

AttrList attrsOf(const Shape &s) {
  AttrList attrs;
  attrs.set("strides", {2, 1}).set("pads", {1, 1, 1, 1}).set("group", s.group);
  return attrs;
}

TEST(ConvInteger, IsExact) {
  std::mt19937 rng(1);
  for (const Kernel *row : rowsOf("conv_integer"))
    for (Shape s : {Shape{2, 5, 20, 1}, Shape{1, 8, 4, 4}, Shape{1, 40, 33, 1}})
      for (DType type : {DType::U8, DType::I8})
        for (bool perChannel : {false, true}) {
          std::vector<Tensor> in = {
              filled<uint8_t>(type, {s.n, s.c, s.h, s.w}, rng),
              filled<uint8_t>(DType::I8, {s.o, s.c / s.group, s.k, s.k}, rng), filled<uint8_t>(type, {}, rng),
              filled<uint8_t>(DType::I8, perChannel ? std::vector{s.o} : std::vector<int64_t>{}, rng)};
          Tensor y = runRow(*row, in, attrsOf(s))[0];
          for (int64_t i = 0; i < y.elements(); ++i)
            ASSERT_EQ(y.as<int32_t>()[i], sumAt(s, in[0], byteAt(in[2], 0), in[1], in[3], i))
                << row->name << " " << i;
        }
}

TEST(QlinearConv, RoundsToNearestAndSaturates) {
  std::mt19937 rng(2);
  Shape s{1, 6, 18, 1};
  auto scale = [](float v) { return filled<float>(DType::F32, {}, [&] { return v; }); };
  for (const Kernel *row : rowsOf("qlinear_conv")) {
    if (std::string_view(row->name).find("depthwise") != std::string_view::npos ||
        std::string_view(row->name).find("winograd") != std::string_view::npos)
      continue; // take packed weights only
    Tensor zero = zeros(DType::U8, {});
    std::vector<Tensor> in = {
        filled<uint8_t>(DType::U8, {s.n, s.c, s.h, s.w}, rng),
        scale(0.02f),
        filled<uint8_t>(DType::U8, {}, rng),
        filled<uint8_t>(DType::U8, {s.o, s.c, s.k, s.k}, rng),
        scale(0.03f),
        filled<uint8_t>(DType::U8, {}, rng),
        scale(0.7f),
        filled<uint8_t>(DType::U8, {}, [] { return 100; }),
        filled<int32_t>(DType::I32, {s.o}, [&] { return int32_t(rng() % 20000) - 10000; })};
    Tensor y = runRow(*row, in, attrsOf(s))[0];
    for (int64_t i = 0; i < y.elements(); ++i) {
      int64_t o = i / (s.outH() * s.outW()) % s.o;
      int64_t sum = sumAt(s, in[0], byteAt(in[2], 0), in[3], in[5], i) + in[8].as<int32_t>()[o];
      double exact = double(sum) * 0.02 * 0.03 / 0.7 + 100;
      ASSERT_NEAR(double(byteAt(y, i)), std::clamp(exact, 0.0, 255.0), 0.5 + 1e-4) << row->name << " " << i;
    }
  }
}

// Channels moved last: [N, C, H, W] to [N, H, W, C].
Tensor channelsLast(const Tensor &t) {
  Tensor out = t;
  int64_t c = t.dims[1], pixels = t.dims[2] * t.dims[3];
  for (int64_t n = 0; n < t.dims[0]; ++n)
    for (int64_t i = 0; i < c; ++i)
      for (int64_t p = 0; p < pixels; ++p)
        out.as<uint8_t>()[(n * pixels + p) * c + i] = t.as<uint8_t>()[(n * c + i) * pixels + p];
  out.dims = {t.dims[0], t.dims[2], t.dims[3], c};
  return out;
}

// Packed weights and channels last give the very bytes that ONNX's own form gives, and these are what the
// formula says: nearest(sum * (xs * ws / ys) + bias / ys) + zero in f32.
TEST(QlinearConv, LayoutsGiveTheSameBytes) {
  std::mt19937 rng(5);
  auto scale = [](float v) { return filled<float>(DType::F32, {}, [&] { return v; }); };
  for (const Kernel *row : rowsOf("qlinear_conv"))
    for (Shape s : {Shape{2, 3, 20, 1}, Shape{1, 8, 8, 2}, Shape{1, 40, 33, 1}, Shape{1, 37, 37, 37, 9, 11},
                    Shape{1, 64, 64, 64, 9, 9}, Shape{1, 16, 16, 1, 5, 5, 1}, Shape{1, 3, 20, 1, 9, 17, 7},
                    Shape{2, 12, 16, 1}})
      for (int form = 0; form < 8; ++form) {
        bool isDepthwise = s.group > 1 && s.group == s.c;
        bool isDepthwiseRow = std::string_view(row->name).find("depthwise") != std::string_view::npos;
        bool isWinogradRow = std::string_view(row->name).find("winograd") != std::string_view::npos;
        if (isDepthwiseRow != isDepthwise || isWinogradRow)
          continue;
        DType type = form & 1 ? DType::I8 : DType::U8, wType = form & 2 ? DType::U8 : DType::I8;
        bool isBounded = (form & 4) != 0;
        Tensor x = filled<uint8_t>(type, {s.n, s.c, s.h, s.w}, rng),
               w = filled<uint8_t>(wType, {s.o, s.c / s.group, s.k, s.k}, rng);
        ConvWeight shape{s.group, s.c, s.o, s.k * s.k, false, 1, wType == DType::I8};
        const char *layout = isDepthwise ? "depthwise" : "panel16k4";
        Tensor packed = w;
        packed.bytes.assign(*packedBytes(layout, shape), std::byte(0xff));
        ASSERT_TRUE(packWeight(layout, shape, w.bytes, packed.bytes).isOk());
        std::vector<Tensor> in = {
            channelsLast(x),
            scale(0.02f),
            filled<uint8_t>(type, {}, rng),
            packed,
            filled<float>(DType::F32, {s.o}, [&] { return 0.001f * float(1 + rng() % 50); }),
            filled<uint8_t>(wType, {}, rng),
            scale(0.7f),
            filled<uint8_t>(DType::U8, {}, [] { return 100; }),
            uniform({s.o}, rng)};
        AttrList last = attrsOf(s);
        last.set("layout", "nhwc").set("packed", layout);
        if (isBounded)
          last.set("activation", "clip").setFloat("act_alpha", -20).setFloat("act_beta", 35.1);
        Tensor y = runRow(*row, in, last)[0];
        float low = isBounded ? std::nearbyint(-20 / 0.7f) : -100,
              high = isBounded ? std::nearbyint(35.1f / 0.7f) : 155;
        for (int64_t i = 0; i < y.elements(); ++i) {
          int64_t o = i % s.o, pixel = i / s.o % (s.outH() * s.outW()), n = i / s.o / (s.outH() * s.outW());
          int64_t sum = sumAt(s, x, byteAt(in[2], 0), w, in[5], (n * s.o + o) * s.outH() * s.outW() + pixel);
          float value = float(sum) * (0.02f * in[4].as<float>()[o] / 0.7f) + in[8].as<float>()[o] / 0.7f;
          ASSERT_EQ(byteAt(y, i), int64_t(std::nearbyint(std::clamp(value, low, high))) + 100)
              << row->name << " form " << form << " element " << i;
        }
        if (isDepthwise)
          continue;
        in[0] = x;
        in[3] = w;
        AttrList first = attrsOf(s);
        if (isBounded)
          first.set("activation", "clip").setFloat("act_alpha", -20).setFloat("act_beta", 35.1);
        Tensor same = channelsLast(runRow(*row, in, first)[0]);
        ASSERT_EQ(same.bytes, y.bytes) << row->name << " form " << form;
      }
}

// With offsets of zero and masks of one it is a plain convolution; whole offsets move the window.
TEST(DeformConv, WholeOffsetsMoveTaps) {
  std::mt19937 rng(3);
  std::vector<Tensor> in = {uniform({1, 2, 5, 6}, rng), uniform({3, 2, 2, 2}, rng),
                            zeros(DType::F32, {1, 8, 4, 5}), uniform({3}, rng)};
  for (int64_t i = 0; i < in[2].elements(); ++i)
    in[2].as<float>()[i] = i / 20 % 2 == 0 ? 1.0f : -2.0f; // every tap one down, two left
  for (const Kernel *row : rowsOf("deform_conv")) {
    Tensor y = runRow(*row, in, {})[0];
    for (int64_t i = 0; i < y.elements(); ++i) {
      int64_t ox = i % 5, oy = i / 5 % 4, o = i / 20;
      double want = double(in[3].as<float>()[o]);
      for (int64_t c = 0; c < 2; ++c)
        for (int64_t ky = 0; ky < 2; ++ky)
          for (int64_t kx = 0; kx < 2; ++kx) {
            int64_t iy = oy + ky + 1, ix = ox + kx - 2;
            if (iy < 5 && ix >= 0)
              want += double(in[0].as<float>()[(c * 5 + iy) * 6 + ix]) *
                      double(in[1].as<float>()[((o * 2 + c) * 2 + ky) * 2 + kx]);
          }
      ASSERT_NEAR(double(y.as<float>()[i]), want, 12.0 / (1 << 24) * 9) << row->name << " " << i;
    }
  }
}

} // namespace
} // namespace dspark
