// Operators on 8-bit tensors give the bytes that dequantising, computing in f32 and quantising gives.
#include "test/kernels/byte_tensor.h"

namespace dspark {
namespace {

using namespace test;

Tensor randomBytes(DType type, std::vector<int64_t> dims, std::mt19937 &rng) {
  return filled<uint8_t>(type, std::move(dims), rng);
}
Tensor scalar(float value) { return floats({value}, {}); }
Tensor zeroPoint(DType type, int value) {
  return filled<uint8_t>(type, {}, [&] { return value; });
}

TEST(Lookup, TakesTheEntryOfEachByte) {
  std::mt19937 rng(1);
  for (const Kernel *row : rowsOf("lookup"))
    for (DType from : {DType::I8, DType::U8})
      for (DType to : {DType::I8, DType::U8})
        for (std::vector<int64_t> dims : {std::vector<int64_t>{0}, {}, {3, 7}, {70001}}) {
          std::vector<Tensor> in = {randomBytes(from, dims, rng), randomBytes(to, {256}, rng)};
          Tensor y = runRow(*row, in, {})[0];
          for (int64_t i = 0; i < y.elements(); ++i)
            ASSERT_EQ(byteAt(y, i), byteAt(in[1], byteAt(in[0], i) + (from == DType::I8 ? 128 : 0))) << i;
        }
}

TEST(QlinearBinary, EqualsTheUnfusedForm) {
  std::mt19937 rng(2);
  struct Dims {
    std::vector<int64_t> a, b;
  };
  for (const Kernel *row : rowsOf("qlinear_binary"))
    for (const char *kind : {"add", "sub", "mul"})
      for (int form = 0; form < 8; ++form)
        for (const Dims &dims : {Dims{{5, 37}, {5, 37}}, Dims{{2, 3, 33}, {33}}, Dims{{4, 1, 9}, {1, 6, 1}},
                                 Dims{{}, {19}}, Dims{{0, 3}, {3}}, Dims{{40000}, {}}}) {
          DType a = form & 1 ? DType::I8 : DType::U8, b = form & 2 ? DType::I8 : DType::U8,
                y = form & 4 ? DType::I8 : DType::U8;
          std::vector<Tensor> in = {randomBytes(a, dims.a, rng),
                                    scalar(0.031f),
                                    zeroPoint(a, int(rng() % 256)),
                                    randomBytes(b, dims.b, rng),
                                    scalar(0.017f),
                                    zeroPoint(b, int(rng() % 256)),
                                    scalar(0.043f),
                                    zeroPoint(y, int(rng() % 256))};
          AttrList attrs;
          attrs.set("kind", kind);
          Tensor got = runRow(*row, in, attrs)[0];
          Tensor left = runOp("dequantize_linear", {in[0], in[1], in[2]})[0],
                 right = runOp("dequantize_linear", {in[3], in[4], in[5]})[0];
          Tensor want = runOp("quantize_linear", {runOp("binary", {left, right}, attrs)[0], in[6], in[7]})[0];
          ASSERT_EQ(got.dims, want.dims);
          ASSERT_EQ(got.bytes, want.bytes) << row->name << " " << kind << " form " << form;
        }
}

// Every pair of bytes: quotients at ties, at scales that have no inverse, and NaN.
TEST(QlinearBinary, RoundsEveryQuotientAsDividingDoes) {
  Tensor a = zeros(DType::U8, {256, 1}), b = zeros(DType::U8, {256});
  for (int i = 0; i < 256; ++i)
    a.as<uint8_t>()[i] = b.as<uint8_t>()[i] = uint8_t(i);
  struct Scales {
    float a, b, y;
  };
  for (const Kernel *row : rowsOf("qlinear_binary"))
    for (const Scales &s :
         {Scales{0.5f, 0.5f, 1}, Scales{0.1f, 0.1f, 0.2f}, Scales{0.37f, 0.81f, 0.9f},
          Scales{1e-38f, 2e-38f, 3e-38f}, Scales{1e38f, 1e38f, 1e38f}, Scales{1, INFINITY, 1}})
      for (const char *kind : {"add", "sub", "mul"}) {
        std::vector<Tensor> in = {a,
                                  scalar(s.a),
                                  zeroPoint(DType::U8, 101),
                                  b,
                                  scalar(s.b),
                                  zeroPoint(DType::U8, 7),
                                  scalar(s.y),
                                  zeroPoint(DType::U8, 90)};
        AttrList attrs;
        attrs.set("kind", kind);
        Tensor left = runOp("dequantize_linear", {in[0], in[1], in[2]})[0],
               right = runOp("dequantize_linear", {in[3], in[4], in[5]})[0];
        ASSERT_EQ(runRow(*row, in, attrs)[0].bytes,
                  runOp("quantize_linear", {runOp("binary", {left, right}, attrs)[0], in[6], in[7]})[0].bytes)
            << row->name << " " << kind << " " << s.y;
      }
}

Tensor moveLast(const Tensor &t) {
  Tensor out = t;
  int64_t c = t.dims[1], pixels = t.dims[2] * t.dims[3];
  for (int64_t i = 0; i < t.elements(); ++i)
    out.as<uint8_t>()[(i / (c * pixels) * pixels + i % pixels) * c + i / pixels % c] = t.as<uint8_t>()[i];
  out.dims = {t.dims[0], t.dims[2], t.dims[3], c};
  return out;
}

// The mean of a window, in f64; within half a step and what f32 scales may move a tie.
TEST(QlinearPool, AveragesAreRoundedOnce) {
  std::mt19937 rng(3);
  for (const Kernel *row : rowsOf("qlinear_pool"))
    for (int form = 0; form < 16; ++form) {
      DType type = form & 1 ? DType::I8 : DType::U8, to = form & 2 ? DType::I8 : DType::U8;
      bool isGlobal = (form & 4) != 0, countsPadding = (form & 8) != 0;
      Tensor x = randomBytes(type, {2, 37, 9, 7}, rng), zero = randomBytes(type, {}, rng);
      AttrList attrs;
      if (!isGlobal)
        attrs.set("kernel_shape", {3, 2}).set("strides", {2, 1}).set("pads", {1, 1, 1, 0});
      attrs.set("count_include_pad", countsPadding);
      std::vector<Tensor> in = {x, scalar(0.05f), zero, scalar(0.04f), zeroPoint(to, 20)};
      Tensor y = runRow(*row, in, attrs)[0];
      in[0] = moveLast(x);
      attrs.set("layout", "nhwc");
      ASSERT_EQ(runRow(*row, in, attrs)[0].bytes, moveLast(y).bytes) << row->name;
      int64_t low = to == DType::I8 ? -128 : 0;
      for (int64_t i = 0; i < y.elements(); ++i) {
        int64_t ox = i % y.dims[3], oy = i / y.dims[3] % y.dims[2], plane = i / y.dims[3] / y.dims[2],
                inside = 0;
        int64_t counted = 0;
        double sum = 0;
        for (int64_t ky = 0; ky < (isGlobal ? 9 : 3); ++ky)
          for (int64_t kx = 0; kx < (isGlobal ? 7 : 2); ++kx) {
            int64_t iy = isGlobal ? ky : oy * 2 - 1 + ky, ix = isGlobal ? kx : ox - 1 + kx;
            counted += iy < 10 && ix < 7;
            if (iy < 0 || iy >= 9 || ix < 0 || ix >= 7)
              continue;
            ++inside;
            sum += double(byteAt(x, (plane * 9 + iy) * 7 + ix) - byteAt(zero, 0));
          }
        double mean = sum / double(countsPadding && !isGlobal ? counted : inside) * 0.05 / 0.04 + 20;
        ASSERT_NEAR(double(byteAt(y, i)), std::clamp(mean, double(low), double(low + 255)), 0.5 + 1e-4)
            << row->name << " " << i;
      }
    }
}

TEST(Pool, MaximaOfBytes) {
  std::mt19937 rng(4);
  for (const Kernel *row : rowsOf("pool"))
    for (DType type : {DType::I8, DType::U8}) {
      if (std::string_view(row->name).find("f32") != std::string_view::npos)
        continue;
      Tensor x = randomBytes(type, {2, 37, 8, 9}, rng);
      AttrList attrs;
      attrs.set("kind", "max").set("kernel_shape", {3, 3}).set("strides", {2, 2}).set("pads", {1, 1, 1, 1});
      std::vector<Tensor> in = {x};
      Tensor y = runRow(*row, in, attrs)[0];
      in[0] = moveLast(x);
      attrs.set("layout", "nhwc");
      ASSERT_EQ(runRow(*row, in, attrs)[0].bytes, moveLast(y).bytes) << row->name;
      for (int64_t i = 0; i < y.elements(); ++i) {
        int64_t ox = i % 5, oy = i / 5 % 4, plane = i / 20, best = -1000;
        for (int64_t iy = std::max<int64_t>(oy * 2 - 1, 0); iy < std::min<int64_t>(oy * 2 + 2, 8); ++iy)
          for (int64_t ix = std::max<int64_t>(ox * 2 - 1, 0); ix < std::min<int64_t>(ox * 2 + 2, 9); ++ix)
            best = std::max(best, byteAt(x, (plane * 8 + iy) * 9 + ix));
        ASSERT_EQ(byteAt(y, i), best) << row->name << " " << i;
      }
    }
}

} // namespace
} // namespace dspark
