// Speed of matmul with weights of few bits, on one thread.
//
//   bench_packed [FILTER] [--isa LEVEL] [--seconds S] [--list]
//
// A case is a layout, an arithmetic and the weights' shape: 4096 x 4096, or the matrices of SmolLM2-135M and
// Gemma-3-270m. They are cold: calls walk through 160 MB of copies. First the results are compared with the
// baseline level's. Then, for 1 to 512 rows, calls alternate with the limit, measured by the same thread:
// reading as many bytes from a buffer of that size (up to 8 rows), and the peak of 8-bit products that are
// added in 32 bits, of products of bf16, or of multiply-adds for f32 arithmetic (AVX2 adds codes of up to 6
// bits in 16 bits and could exceed it; at level amx it is that of six products in bf16, and weights in bf16
// take three). Printed: median time, GB/s of weights and the median share of the read, GOP/s and the median
// share of the peak, and the time of 4 and 8 rows in units of one. Exit code 3 if a result is wrong.
#include "bench/kernels/bandwidth.h"
#include "bench/kernels/options.h"
#include "bench/kernels/packed_product.h"
#include "bench/kernels/peak.h"
#include "kernels/common/numeric.h"
#include "runtime/format/PackedBits.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using namespace dspark;
using namespace dspark::bench;

uint64_t state = 1;
uint32_t draw() {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return uint32_t(state >> 33);
}

// Random codes; scales near 1/100.
class RandomBlocks : public BlockSource {
public:
  explicit RandomBlocks(const PackedFormat &format) : format(format) {}
  void read(int64_t, int64_t, BlockValues &v) const override {
    constexpr uint8_t kMask[] = {3, 7, 15, 31, 63, 255, 15, 15};
    for (uint8_t &code : v.codes)
      code = uint8_t(draw() & kMask[int(format.code)]);
    v.factor = v.minFactor = f32ToF16(0.001f);
    for (size_t g = 0; g < v.scale.size(); ++g) {
      v.scale[g] = number();
      v.zero[g] = format.zero == ZeroKind::Byte || format.isSuper() ? draw() & 7 : number();
    }
  }

private:
  uint32_t number() const {
    float x = 0.01f + 0.0001f * float(draw() & 15);
    switch (format.scale) {
    case ScaleKind::F32:
      return std::bit_cast<uint32_t>(x);
    case ScaleKind::F16:
      return f32ToF16(x);
    case ScaleKind::BF16:
      return f32ToBf16(x);
    case ScaleKind::E8M0:
      return 121;
    default:
      return 8 + (draw() & 7);
    }
  }
  PackedFormat format;
};

struct Case {
  const char *layout, *arithmetic;
  int64_t k = 4096, n = 4096;
  std::string name() const {
    return std::string(layout) + " " + arithmetic + " " + std::to_string(k) + "x" + std::to_string(n);
  }
  double peak(Isa isa) const {
    std::string_view how = arithmetic;
    return how == "int8"   ? bench::integerPeak(isa, true)
           : how == "bf16" ? bench::bf16Peak(isa)
                           : bench::multiplyAddPeak(isa);
  }
};

// Copies of one random matrix, cold.
class Weights : public ColdWeights {
public:
  explicit Weights(const Case &c) : ColdWeights(size_t(*PackedFormat::named(c.layout)->bytes(c.k, c.n))) {
    PackedFormat format = *PackedFormat::named(c.layout);
    if (format.isFloat())
      packRandomFloats(c);
    else if (!packBlocks(format, c.k, c.n, RandomBlocks(format), first()).isOk())
      std::abort();
    copy();
  }

private:
  void packRandomFloats(const Case &c) {
    std::vector<uint16_t> values(size_t(c.k * c.n));
    bool isHalf = std::string_view(c.layout) == "f16";
    for (uint16_t &value : values)
      value =
          isHalf ? f32ToF16(float(draw() & 255) / 256 - 0.5f) : f32ToBf16(float(draw() & 255) / 256 - 0.5f);
    if (!packFloats(c.layout, c.k, c.n, true, std::as_bytes(std::span(values)), first()).isOk())
      std::abort();
  }
};

PackedProduct productOf(const Case &c, int64_t rows, Weights &weights, Isa isa) {
  PackedProduct product({c.layout, c.arithmetic, rows, c.k, c.n}, weights, isa);
  for (float &value : product.x)
    value = float(draw() & 1023) / 512 - 1;
  return product;
}

// The baseline level adds the same terms in the same order, without fused multiply-adds.
bool isRight(const Case &c, Weights &weights, Isa isa) {
  PackedProduct fast = productOf(c, 5, weights, isa), plain = productOf(c, 5, weights, Isa::Baseline);
  plain.x = fast.x;
  fast.run();
  plain.run();
  double worst = 0, size = 0;
  for (size_t i = 0; i < fast.y.size(); ++i) {
    worst = std::max(worst, double(std::fabs(fast.y[i] - plain.y[i])));
    size = std::max(size, double(std::fabs(plain.y[i])));
  }
  return worst <= 1e-4 * size;
}

// The buffer that stands for the weights is as cold as they are.
class ColdRead {
public:
  ColdRead(Isa isa, size_t bytes)
      : isa(vectorIsa(isa)), bytes(bytes), size(std::max<size_t>(kColdBytes, bytes)),
        memory(hugePages(size)) {
    std::memset(memory.get(), 1, size);
  }
  double seconds() {
    at = at + bytes > size ? 0 : at;
    const bench::BandwidthLoops &loops = isa == Isa::Avx512 ? bench::kBandwidthAvx512
                                         : isa == Isa::Avx2 ? bench::kBandwidthAvx2
                                                            : bench::kBandwidthBaseline;
    double begin = bench::threadSeconds();
    sink = loops.read(reinterpret_cast<const float *>(memory.get() + at), int64_t(bytes));
    at += bytes;
    return bench::threadSeconds() - begin;
  }

private:
  Isa isa;
  size_t bytes, size, at = 0;
  Block memory;
  volatile float sink = 0;
};

bool measure(const Case &c, Isa isa, double seconds) {
  Weights weights(c);
  ColdRead read(isa, weights.bytes);
  double one = 0;
  std::printf("%s: %.2f bits a weight\n", c.name().c_str(), double(weights.bytes) * 8 / double(c.k * c.n));
  if (!isRight(c, weights, isa)) {
    std::printf("  WRONG\n");
    return false;
  }
  for (int64_t rows : {1, 2, 4, 8, 16, 64, 512}) {
    PackedProduct product = productOf(c, rows, weights, isa);
    product.run();
    std::vector<double> times, readShares, peakShares, ratios;
    for (double end = bench::threadSeconds() + seconds; bench::threadSeconds() < end || times.size() < 5;) {
      double floor = rows <= 8 ? read.seconds() : 0;
      double begin = bench::threadSeconds();
      product.run();
      times.push_back(bench::threadSeconds() - begin);
      double peak = c.peak(isa);
      readShares.push_back(floor / times.back());
      peakShares.push_back(product.flops() / times.back() / peak);
      if (rows <= 8)
        ratios.push_back(times.back() / floor);
    }
    double time = median(times), cold = ratios.empty() ? 0 : median(ratios);
    one = rows == 1 ? cold : one;
    std::printf("  %4lld rows %9.1f us", (long long)rows, time * 1e6);
    if (rows <= 8)
      std::printf("  %5.1f GB/s  %3.0f%% of a read", double(weights.bytes) / time * 1e-9,
                  median(readShares) * 100);
    std::printf("  %6.1f GOP/s  %3.0f%% of the peak", product.flops() / time * 1e-9,
                median(peakShares) * 100);
    if (rows == 4 || rows == 8)
      std::printf("  t(%lld)/t(1) %.2f", (long long)rows, cold / one);
    std::printf("\n");
    std::fflush(stdout);
  }
  return true;
}

constexpr Case kCases[] = {
    {"q4_0", "int8"},
    {"q4_1", "int8"},
    {"q5_0", "int8"},
    {"q5_1", "int8"},
    {"q8_0", "int8"},
    {"q2_k", "int8"},
    {"q3_k", "int8"},
    {"q4_k", "int8"},
    {"q5_k", "int8"},
    {"q6_k", "int8"},
    {"iq4_nl", "int8"},
    {"iq4_xs", "int8"},
    {"mxfp4", "int8"},
    {"nvfp4", "int8"},
    {"int4_g128_f16_zp", "int8"},
    {"int4_g32_f32_zp", "int8"},
    {"int8_grow_f32", "int8"},
    {"q4_0", "f32"},
    {"q4_k", "f32"},
    {"f16", "f32"},
    {"bf16", "f32"},
    {"bf16", "bf16"},
    // SmolLM2-135M
    {"q4_1", "int8", 576, 192},
    {"q4_1", "int8", 576, 576},
    {"q4_1", "int8", 576, 1536},
    {"q4_1", "int8", 1536, 576},
    {"q8_0", "int8", 576, 49152},
    // Gemma-3-270m
    {"q5_0", "int8", 640, 1024},
    {"q5_0", "int8", 640, 2048},
    {"q4_k", "int8", 2048, 640},
    {"q6_k", "int8", 2048, 640},
    {"q8_0", "int8", 640, 262144},
};

} // namespace

int main(int argc, char **argv) {
  const std::optional<BenchOptions> options = parseBenchOptions("bench_packed", 0.5, argc, argv);
  if (!options)
    return 1;
  return runBench(*options, kCases, [](const Case &c) { return c.name(); }, measure);
}
