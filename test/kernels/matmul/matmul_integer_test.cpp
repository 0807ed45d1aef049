// Integer products are exact: every row and ISA level must give the very sums.
#include "runtime/format/PackedLayout.h"
#include "test/kernels/byte_tensor.h"

namespace dspark {
namespace {

using namespace test;

// Bytes with many extreme values, where saturating arithmetic would show.
Tensor extremeBytes(DType type, std::vector<int64_t> dims, std::mt19937 &rng) {
  return filled<uint8_t>(type, std::move(dims), [&] {
    uint32_t draw = rng();
    const uint8_t extremes[] = {0, 255, 127, 128};
    return draw % 2 ? extremes[draw >> 8 & 3] : uint8_t(draw >> 16);
  });
}

Tensor packQuads(const Tensor &b) {
  Tensor packed = b;
  MatrixWeight weight{1, b.dims[0], b.dims[1], false, 1, b.type == DType::I8};
  packed.bytes.assign(*packedBytes("panel16k4", weight), std::byte(0xff));
  EXPECT_TRUE(packWeight("panel16k4", weight, b.bytes, packed.bytes).isOk());
  return packed;
}

TEST(MatmulInteger, IsExact) {
  std::mt19937 rng(1);
  for (const Kernel *row : rowsOf("matmul_integer"))
    for (auto [m, n, k] :
         {std::array<int64_t, 3>{1, 1, 1}, {1, 40, 33}, {7, 17, 64}, {100, 33, 257}, {2, 16, 3}})
      for (int form = 0; form < 16; ++form) {
        DType aType = form & 1 ? DType::I8 : DType::U8, bType = form & 2 ? DType::I8 : DType::U8;
        bool perLine = (form & 4) != 0, packed = (form & 8) != 0;
        Tensor b = extremeBytes(bType, {k, n}, rng);
        std::vector<Tensor> in = {
            extremeBytes(aType, {m, k}, rng), packed ? packQuads(b) : b,
            extremeBytes(aType, perLine ? std::vector{m} : std::vector<int64_t>{}, rng),
            extremeBytes(bType, perLine ? std::vector{n} : std::vector<int64_t>{}, rng)};
        AttrList attrs;
        attrs.set("packed", packed ? "panel16k4" : "");
        Tensor y = runRow(*row, in, attrs)[0];
        for (int64_t i = 0; i < m * n; ++i) {
          int64_t want = 0, r = i / n, c = i % n;
          for (int64_t t = 0; t < k; ++t)
            want += (byteAt(in[0], r * k + t) - byteAt(in[2], perLine ? r : 0)) *
                    (byteAt(b, t * n + c) - byteAt(in[3], perLine ? c : 0));
          ASSERT_EQ(y.as<int32_t>()[i], want) << row->name << " form " << form << " element " << i;
        }
      }
}

// Weights that are small but for one in `every` make AVX2 multiply bytes (igemm_bytes.h); the others must
// neither saturate where they lie nor with their terms in another order.
TEST(MatmulInteger, IsExactWithSmallWeights) {
  std::mt19937 rng(7);
  for (const Kernel *row : rowsOf("matmul_integer"))
    for (auto [m, n, k] : {std::array<int64_t, 3>{40, 33, 256}, {97, 16, 1030}, {33, 50, 515}})
      for (unsigned every : {1u << 30, 700u, 150u})
        for (int form = 0; form < 4; ++form) {
          DType aType = form & 1 ? DType::I8 : DType::U8;
          bool perLine = (form & 2) != 0;
          Tensor b = filled<int8_t>(DType::I8, {k, n}, [&] {
            const int8_t large[] = {127, -128, 100, -100};
            return rng() % every == 0 ? int(large[rng() % 4]) : int(rng() % 128) - 64;
          });
          std::vector<Tensor> in = {
              extremeBytes(aType, {m, k}, rng), packQuads(b),
              extremeBytes(aType, perLine ? std::vector{m} : std::vector<int64_t>{}, rng),
              extremeBytes(DType::I8, perLine ? std::vector{n} : std::vector<int64_t>{}, rng)};
          AttrList attrs;
          attrs.set("packed", "panel16k4");
          Tensor y = runRow(*row, in, attrs)[0];
          for (int64_t i = 0; i < m * n; ++i) {
            int64_t want = 0, r = i / n, c = i % n;
            for (int64_t t = 0; t < k; ++t)
              want += (byteAt(in[0], r * k + t) - byteAt(in[2], perLine ? r : 0)) *
                      (b.as<int8_t>()[t * n + c] - byteAt(in[3], perLine ? c : 0));
            ASSERT_EQ(y.as<int32_t>()[i], want) << row->name << " form " << form << " element " << i;
          }
        }
}

TEST(QlinearMatmul, RoundsToNearestAndSaturates) {
  std::mt19937 rng(2);
  int64_t batch = 2, m = 9, n = 20, k = 31;
  for (const Kernel *row : rowsOf("qlinear_matmul"))
    for (DType yType : {DType::I8, DType::U8}) {
      auto scalar = [](float v) { return filled<float>(DType::F32, {}, [&] { return v; }); };
      std::vector<Tensor> in = {extremeBytes(DType::U8, {batch, m, k}, rng),
                                scalar(0.02f),
                                extremeBytes(DType::U8, {}, rng),
                                extremeBytes(DType::I8, {batch, k, n}, rng),
                                scalar(0.03f),
                                extremeBytes(DType::I8, {}, rng),
                                scalar(1.5f),
                                filled<int8_t>(yType, {}, [] { return 3; })};
      Tensor y = runRow(*row, in, {})[0];
      for (int64_t i = 0; i < batch * m * n; ++i) {
        int64_t sum = 0, bt = i / (m * n), r = i / n % m, c = i % n;
        for (int64_t t = 0; t < k; ++t)
          sum += (byteAt(in[0], (bt * m + r) * k + t) - byteAt(in[2], 0)) *
                 (byteAt(in[3], (bt * k + t) * n + c) - byteAt(in[5], 0));
        double exact = double(sum) * 0.02 * 0.03 / 1.5 + 3;
        double low = yType == DType::I8 ? -128 : 0, high = yType == DType::I8 ? 127 : 255;
        // Within half a step, plus what f32 scales may move a tie.
        ASSERT_NEAR(double(byteAt(y, i)), std::clamp(exact, low, high), 0.5 + 1e-4)
            << row->name << " element " << i;
      }
    }
}

// The result of sums * scale + offset in f32, bounded and rounded as the kernels promise: the same at every
// level.
float requantized(int64_t sum, float scale, float offset, float zero, float low, float high) {
  float value = float(sum) * scale + offset;
  return std::nearbyint(std::clamp(value, low - zero, high - zero)) + zero;
}

TEST(QlinearMatmul, PackedWeightsBiasAndBoundsGiveTheSameBitsEverywhere) {
  std::mt19937 rng(3);
  auto scales = [&](int64_t count) {
    return filled<float>(DType::F32, count ? std::vector{count} : std::vector<int64_t>{},
                         [&] { return 0.001f * float(1 + rng() % 50); });
  };
  for (const Kernel *row : rowsOf("qlinear_matmul"))
    for (auto [m, n, k] : {std::array<int64_t, 3>{1, 40, 33}, {7, 17, 64}, {101, 35, 600}, {3, 16, 1030}})
      for (int form = 0; form < 32; ++form) {
        DType aType = form & 1 ? DType::I8 : DType::U8, bType = form & 2 ? DType::I8 : DType::U8;
        bool perColumn = (form & 4) != 0, transposed = (form & 8) != 0, relu = (form & 16) != 0;
        DType yType = form & 1 ? DType::U8 : DType::I8;
        Tensor b = extremeBytes(bType, transposed ? std::vector{n, k} : std::vector{k, n}, rng);
        Tensor packed = b;
        MatrixWeight weight{1, k, n, transposed, 1, bType == DType::I8};
        packed.bytes.assign(*packedBytes("panel16k4", weight), std::byte(0xff));
        ASSERT_TRUE(packWeight("panel16k4", weight, b.bytes, packed.bytes).isOk());
        std::vector<Tensor> in = {
            extremeBytes(aType, {m, k}, rng),
            scales(0),
            extremeBytes(aType, {}, rng),
            packed,
            scales(perColumn ? n : 0),
            extremeBytes(bType, perColumn ? std::vector{n} : std::vector<int64_t>{}, rng),
            filled<float>(DType::F32, {}, [&] { return float(k) * 0.03f; }),
            filled<int8_t>(yType, {}, [] { return 7; }),
            uniform({n}, rng)};
        AttrList attrs;
        attrs.set("packed", "panel16k4").set("trans_b", transposed ? 1 : 0);
        if (relu)
          attrs.set("activation", "relu");
        Tensor y = runRow(*row, in, attrs)[0];
        in[3] = b;
        AttrList plain;
        plain.set("trans_b", transposed ? 1 : 0);
        if (relu)
          plain.set("activation", "relu");
        ASSERT_EQ(runRow(*row, in, plain)[0].bytes, y.bytes) << row->name << " unpacked, form " << form;
        float aScale = *in[1].as<float>(), yScale = *in[6].as<float>(), low = yType == DType::I8 ? -128 : 0;
        for (int64_t i = 0; i < m * n; ++i) {
          int64_t sum = 0, r = i / n, c = i % n, column = perColumn ? c : 0;
          for (int64_t t = 0; t < k; ++t)
            sum += (byteAt(in[0], r * k + t) - byteAt(in[2], 0)) *
                   (byteAt(b, transposed ? c * k + t : t * n + c) - byteAt(in[5], column));
          float want = requantized(sum, aScale * in[4].as<float>()[column] / yScale,
                                   in[8].as<float>()[c] / yScale, 7, relu ? 7 : low, low + 255);
          ASSERT_EQ(byteAt(y, i), int64_t(want)) << row->name << " form " << form << " element " << i;
        }
      }
}

// B without zero points, whose sums may become bytes without going through memory; A with one scale and zero
// point or with several.
TEST(QlinearMatmul, EveryNumberOfRows) {
  std::mt19937 rng(5);
  for (const Kernel *row : rowsOf("qlinear_matmul"))
    for (int64_t m = 1; m <= 38; ++m)
      for (int form = 0; form < 8; ++form) {
        DType aType = form & 1 ? DType::I8 : DType::U8, yType = form & 2 ? DType::I8 : DType::U8;
        int64_t n = std::array{16, 29, 32, 53}[size_t(rng() % 4)],
                k = std::array{3, 4, 30, 64}[size_t(rng() % 4)];
        std::vector<int64_t> rows = form & 4 ? std::vector{m} : std::vector<int64_t>{};
        Tensor b = extremeBytes(DType::I8, {k, n}, rng), packed = b;
        MatrixWeight weight{1, k, n, false, 1, true};
        packed.bytes.assign(*packedBytes("panel16k4", weight), std::byte(0xff));
        ASSERT_TRUE(packWeight("panel16k4", weight, b.bytes, packed.bytes).isOk());
        std::vector<Tensor> in = {
            extremeBytes(aType, {m, k}, rng),
            filled<float>(DType::F32, rows, [&] { return 0.001f * float(1 + rng() % 30); }),
            extremeBytes(aType, rows, rng),
            packed,
            filled<float>(DType::F32, {n}, [&] { return 0.001f * float(1 + rng() % 50); }),
            zeros(DType::I8, {}),
            filled<float>(DType::F32, {}, [&] { return float(k) * 0.03f; }),
            filled<int8_t>(yType, {}, [] { return 7; }),
            uniform({n}, rng)};
        AttrList attrs;
        attrs.set("packed", "panel16k4");
        Tensor y = runRow(*row, in, attrs)[0];
        float yScale = *in[6].as<float>(), low = yType == DType::I8 ? -128 : 0;
        for (int64_t i = 0; i < m * n; ++i) {
          int64_t sum = 0, r = i / n, c = i % n;
          for (int64_t t = 0; t < k; ++t)
            sum += (byteAt(in[0], r * k + t) - byteAt(in[2], form & 4 ? r : 0)) * byteAt(b, t * n + c);
          float want = requantized(sum, in[1].as<float>()[form & 4 ? r : 0] * in[4].as<float>()[c] / yScale,
                                   in[8].as<float>()[c] / yScale, 7, low, low + 255);
          ASSERT_EQ(byteAt(y, i), int64_t(want)) << row->name << " form " << form << " element " << i;
        }
      }
}

TEST(QlinearMatmul, WithoutAScaleTheResultIsFloat) {
  std::mt19937 rng(4);
  int64_t m = 19, n = 21, k = 50;
  for (const Kernel *row : rowsOf("qlinear_matmul")) {
    std::vector<Tensor> in = {extremeBytes(DType::U8, {m, k}, rng),
                              floats({0.25f}, {}),
                              extremeBytes(DType::U8, {}, rng),
                              extremeBytes(DType::I8, {k, n}, rng),
                              floats({0.5f}, {}),
                              zeros(DType::I8, {}),
                              {},
                              {},
                              uniform({n}, rng)};
    Tensor y = runRow(*row, in, {})[0];
    for (int64_t i = 0; i < m * n; ++i) {
      int64_t sum = 0;
      for (int64_t t = 0; t < k; ++t)
        sum += (byteAt(in[0], i / n * k + t) - byteAt(in[2], 0)) * byteAt(in[3], t * n + i % n);
      ASSERT_EQ(y.as<float>()[i], float(sum) * 0.125f + in[8].as<float>()[i % n]) << row->name << " " << i;
    }
  }
}

} // namespace
} // namespace dspark
