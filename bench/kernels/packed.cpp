// Speed of matmul with weights of few bits, on one thread.
//
//   bench_packed [FILTER] [--isa LEVEL] [--seconds S] [--list]
//
// A case is a layout and an arithmetic, on weights of 4096 x 4096 that are cold: calls walk through 160 MB of
// copies. First the results are compared with the baseline level's. Then, for 1, 4, 8, 64 and 512 rows, calls
// alternate with the limit, measured by the same thread: reading as many bytes from a buffer of that size (up
// to 8 rows), and the peak of 8-bit products that are added in 32 bits, or of multiply-adds for f32
// arithmetic (AVX2 adds codes of up to 6 bits in 16 bits and could exceed it). Printed: median time, GB/s of
// weights and the median share of the read, GOP/s and the median share of the peak, and the time of 4 and 8
// rows in units of one. Exit code 3 if a result is wrong.
#include "bench/kernels/bandwidth.h"
#include "bench/kernels/options.h"
#include "bench/kernels/peak.h"
#include "kernels/common/kernel.h"
#include "kernels/common/numeric.h"
#include "runtime/format/PackedBits.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <sys/mman.h>

namespace {

using namespace dspark;

constexpr int64_t kTerms = 4096, kColumns = 4096, kColdBytes = 160 << 20, kHugePage = 2 << 20;

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

// Pages of 2 MiB where the kernel gives them, as a plan's weights section has.
std::byte *hugePages(size_t bytes) {
  void *memory = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
  madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte *>(memory);
}
struct Free {
  void operator()(std::byte *p) const { std::free(p); }
};
using Block = std::unique_ptr<std::byte, Free>;

struct Case {
  const char *layout;
  bool isInt8;
  std::string name() const { return std::string(layout) + (isInt8 ? " int8" : " f32"); }
};

class Weights {
public:
  explicit Weights(const char *layout) : layout(layout) {
    PackedFormat format = *PackedFormat::named(layout);
    bytes = size_t(*format.bytes(kTerms, kColumns));
    copies = std::max<size_t>(kColdBytes / bytes, 2);
    memory.reset(hugePages(bytes * copies));
    if (format.isFloat())
      packFloats();
    else if (!packBlocks(format, kTerms, kColumns, RandomBlocks(format), {memory.get(), bytes}).isOk())
      std::abort();
    for (size_t i = 1; i < copies; ++i)
      std::memcpy(memory.get() + i * bytes, memory.get(), bytes);
  }
  std::byte *next() { return memory.get() + (at++ % copies) * bytes; }

  const char *layout;
  size_t bytes, copies;

private:
  void packFloats() {
    std::vector<uint16_t> values(size_t(kTerms * kColumns));
    bool isHalf = std::string_view(layout) == "f16";
    for (uint16_t &value : values)
      value =
          isHalf ? f32ToF16(float(draw() & 255) / 256 - 0.5f) : f32ToBf16(float(draw() & 255) / 256 - 0.5f);
    if (!packHalves(layout, kTerms, kColumns, true, std::as_bytes(std::span(values)), {memory.get(), bytes})
             .isOk())
      std::abort();
  }
  Block memory;
  size_t at = 0;
};

class Runner {
public:
  Runner(const Case &c, int64_t rows, Weights &weights, Isa isa) : weights(weights) {
    x.resize(size_t(rows * kTerms));
    y.resize(size_t(rows * kColumns));
    for (float &value : x)
      value = float(draw() & 1023) / 512 - 1;
    aDims = {rows, kTerms};
    yDims = {rows, kColumns};
    in = {TensorView{x.data(), aDims.data(), 2, DType::F32},
          TensorView{weights.next(), bDims, 2, DType::F32}};
    out = TensorView{y.data(), yDims.data(), 2, DType::F32};
    attrs = {{"packed", {}, {}, c.layout},
             {"arithmetic", {}, {}, c.isInt8 ? "int8" : ""},
             {"trans_b", one, {}, {}}};
    call.in = in;
    call.out = {&out, 1};
    call.attrs = Attrs(attrs);
    row = selectKernel("matmul", call, isa);
    row->prepare(call, work);
    scratch.reset(hugePages(work.scratchPerThread + 64));
    shared.reset(hugePages(work.scratchShared + 64));
  }
  void run() {
    in[1].data = weights.next();
    for (int phase = 0; phase < work.phases; ++phase)
      row->run(call, work, {0, work.tiles[phase], phase, 0, scratch.get(), shared.get()});
  }
  double flops() const { return work.flops; }
  std::vector<float> x, y;

private:
  Weights &weights;
  std::vector<int64_t> aDims, yDims;
  int64_t bDims[2] = {kColumns, kTerms}, one[1] = {1};
  std::array<TensorView, 2> in;
  TensorView out;
  std::vector<Attr> attrs;
  KernelCall call;
  KernelWork work;
  const Kernel *row = nullptr;
  Block scratch, shared;
};

// The baseline level adds the same terms in the same order, without fused multiply-adds.
bool isRight(const Case &c, Weights &weights, Isa isa) {
  Runner fast(c, 5, weights, isa), plain(c, 5, weights, Isa::Baseline);
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

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + ptrdiff_t(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// The buffer that stands for the weights is as cold as they are.
class ColdRead {
public:
  ColdRead(Isa isa, size_t bytes) : isa(isa), bytes(bytes), memory(hugePages(kColdBytes)) {
    std::memset(memory.get(), 1, kColdBytes);
  }
  double seconds() {
    at = at + bytes > kColdBytes ? 0 : at;
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
  size_t bytes, at = 0;
  Block memory;
  volatile float sink = 0;
};

bool measure(const Case &c, Isa isa, double seconds) {
  Weights weights(c.layout);
  ColdRead read(isa, weights.bytes);
  double one = 0;
  std::printf("%s: %.2f bits a weight\n", c.name().c_str(), double(weights.bytes) * 8 / (kTerms * kColumns));
  if (!isRight(c, weights, isa)) {
    std::printf("  WRONG\n");
    return false;
  }
  for (int64_t rows : {1, 4, 8, 64, 512}) {
    Runner runner(c, rows, weights, isa);
    runner.run();
    std::vector<double> times, readShares, peakShares, ratios;
    for (double end = bench::threadSeconds() + seconds; bench::threadSeconds() < end || times.size() < 5;) {
      double floor = rows <= 8 ? read.seconds() : 0;
      double begin = bench::threadSeconds();
      runner.run();
      times.push_back(bench::threadSeconds() - begin);
      double peak = c.isInt8 ? bench::integerPeak(isa, true) : bench::multiplyAddPeak(isa);
      readShares.push_back(floor / times.back());
      peakShares.push_back(runner.flops() / times.back() / peak);
      if (rows <= 8)
        ratios.push_back(times.back() / floor);
    }
    double time = median(times), cold = ratios.empty() ? 0 : median(ratios);
    one = rows == 1 ? cold : one;
    std::printf("  %4lld rows %9.1f us", (long long)rows, time * 1e6);
    if (rows <= 8)
      std::printf("  %5.1f GB/s  %3.0f%% of a read", double(weights.bytes) / time * 1e-9,
                  median(readShares) * 100);
    std::printf("  %6.1f GOP/s  %3.0f%% of the peak", runner.flops() / time * 1e-9, median(peakShares) * 100);
    if (rows == 4 || rows == 8)
      std::printf("  t(%lld)/t(1) %.2f", (long long)rows, cold / one);
    std::printf("\n");
    std::fflush(stdout);
  }
  return true;
}

constexpr Case kCases[] = {
    {"q4_0", true},
    {"q4_1", true},
    {"q5_0", true},
    {"q5_1", true},
    {"q8_0", true},
    {"q2_k", true},
    {"q3_k", true},
    {"q4_k", true},
    {"q5_k", true},
    {"q6_k", true},
    {"iq4_nl", true},
    {"iq4_xs", true},
    {"mxfp4", true},
    {"nvfp4", true},
    {"int4_g128_f16_zp", true},
    {"int4_g32_f32_zp", true},
    {"int8_grow_f32", true},
    {"q4_0", false},
    {"q4_k", false},
    {"f16", false},
    {"bf16", false},
};

} // namespace

int main(int argc, char **argv) {
  const std::optional<BenchOptions> options = parseBenchOptions("bench_packed", 0.5, argc, argv);
  if (!options)
    return 1;
  return runBench(*options, kCases, [](const Case &c) { return c.name(); }, measure);
}
