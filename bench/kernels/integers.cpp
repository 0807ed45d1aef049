// Speed of the 8-bit contractions on one thread, requantisation included: matmul, convolution, depthwise.
//
//   bench_integers [FILTER] [--isa LEVEL] [--seconds S] [--list]
//
// Each case is first checked at 200 of its outputs. Then runs alternate with the peak of the instructions
// that the level multiplies with, measured by the same thread; time is the thread's own. Printed per case:
// shape, median time with the quartiles' distance, GOP/s of the median (a multiply-add counts 2), the median
// share of the peak, and that of the peak of u8 x s8 instructions, which saturate below VNNI. Exit code 3 if
// a result is wrong.
#include "bench/kernels/options.h"
#include "bench/kernels/peak.h"
#include "kernels/common/catalogue.h"
#include "kernels/common/kernel.h"
#include "runtime/format/PackedLayout.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace dspark;
using bench::threadSeconds;

std::mt19937 rng(1);

// w is [outputs, inputs / group, kernel, kernel] on x [1, height, width, inputs]; a product is a 1x1
// convolution of `height` rows and run as qlinear_matmul.
struct Case {
  bool isMatmul;
  int64_t height, width, inputs, outputs, kernel = 1, stride = 1, group = 1;

  bool isDepthwise() const { return group > 1; }
  int64_t depth() const { return inputs / group * kernel * kernel; }
  std::string name() const {
    char text[160];
    if (isMatmul)
      std::snprintf(text, sizeof(text), "matmul %lldx%lldx%lld", (long long)height, (long long)outputs,
                    (long long)inputs);
    else
      std::snprintf(text, sizeof(text), "conv %lldx%lld k%lld s%lld %lld->%lld%s", (long long)height,
                    (long long)width, (long long)kernel, (long long)stride, (long long)inputs,
                    (long long)outputs, isDepthwise() ? " depthwise" : "");
    return text;
  }
};

struct Tensor {
  DType type;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;
  Tensor(DType type, std::vector<int64_t> dims, auto draw) : type(type), dims(std::move(dims)) {
    int64_t count = 1;
    for (int64_t d : this->dims)
      count *= d;
    bytes.resize(size_t(dtypeBytes(type, count)));
    for (int64_t i = 0; i < count; ++i)
      if (type == DType::F32)
        reinterpret_cast<float *>(bytes.data())[i] = float(draw());
      else
        bytes[size_t(i)] = std::byte(uint8_t(int(draw())));
  }
  TensorView view() { return {bytes.data(), dims.data(), int32_t(dims.size()), type}; }
};

class Runner {
public:
  Runner(const Case &c, Isa isa) : c(c) {
    auto byte = [] { return int(rng() % 256); };
    auto value = [](double v) { return [v] { return v; }; };
    operands.emplace_back(DType::U8,
                          c.isMatmul ? std::vector{c.height, c.inputs}
                                     : std::vector<int64_t>{1, c.height, c.width, c.inputs},
                          byte);
    operands.emplace_back(DType::F32, std::vector<int64_t>{}, value(0.02));
    operands.emplace_back(DType::U8, std::vector<int64_t>{}, value(120));
    operands.emplace_back(DType::I8,
                          c.isMatmul ? std::vector{c.outputs, c.inputs}
                                     : std::vector{c.outputs, c.inputs / c.group, c.kernel, c.kernel},
                          byte);
    operands.emplace_back(DType::F32, std::vector{c.outputs}, [] { return 0.001 * double(1 + rng() % 9); });
    operands.emplace_back(DType::I8, std::vector<int64_t>{}, value(0));
    operands.emplace_back(DType::F32, std::vector<int64_t>{}, value(0.02 * std::sqrt(double(c.depth()))));
    operands.emplace_back(DType::U8, std::vector<int64_t>{}, value(128));
    operands.emplace_back(DType::F32, std::vector{c.outputs}, [] { return double(rng() % 100) * 0.01; });
    weights = operands[3].bytes;
    pack();
    setAttrs();
    infer();
    for (Tensor &t : operands)
      in.push_back(t.view());
    out = {{y.data(), yDims.data(), int32_t(yDims.size()), DType::U8}};
    call.in = in;
    call.out = out;
    call.attrs = Attrs(attrs);
    row = selectKernel(op(), call, isa);
    row->prepare(call, work);
    scratch.resize(work.scratchPerThread + 64);
    shared.resize(work.scratchShared + 64);
  }

  void run() {
    auto aligned = [](std::vector<std::byte> &v) {
      return reinterpret_cast<std::byte *>((reinterpret_cast<uintptr_t>(v.data()) + 63) & ~63ull);
    };
    for (int phase = 0; phase < work.phases; ++phase)
      row->run(call, work, {0, work.tiles[phase], phase, 0, aligned(scratch), aligned(shared)});
  }
  bool isRight() {
    for (int i = 0; i < 200; ++i) {
      size_t at = rng() % y.size();
      if (y[at] != expected(int64_t(at)))
        return false;
    }
    return true;
  }
  double flops() const { return work.flops; }
  const char *kernel() const { return row->name; }

private:
  const char *op() const { return c.isMatmul ? "qlinear_matmul" : "qlinear_conv"; }
  float number(size_t operand, int64_t i) const {
    return reinterpret_cast<const float *>(operands[operand].bytes.data())[i];
  }

  void pack() {
    auto fill = [&](const char *name, const auto &weight) {
      layout = name;
      std::vector<std::byte> packed(*packedBytes(name, weight));
      Status status = packWeight(name, weight, weights, packed);
      if (!status.isOk())
        std::fprintf(stderr, "%s\n", status.message().c_str());
      operands[3].bytes = packed;
    };
    if (c.isMatmul)
      fill("panel16k4", MatrixWeight{1, c.inputs, c.outputs, true, 1});
    else
      fill(c.isDepthwise() ? "depthwise" : "panel16k4",
           ConvWeight{c.group, c.inputs, c.outputs, c.kernel * c.kernel, false, 1});
  }
  void setAttrs() {
    int64_t pad = c.kernel / 2;
    numbers = {c.stride, c.stride, pad, pad, pad, pad, c.group, 1};
    std::span<const int64_t> all(numbers);
    attrs = {{"packed", {}, {}, layout}};
    if (c.isMatmul)
      attrs.push_back({"trans_b", all.subspan(7, 1), {}, {}});
    else
      attrs.insert(attrs.end(), {{"layout", {}, {}, "nhwc"},
                                 {"strides", all.subspan(0, 2), {}, {}},
                                 {"pads", all.subspan(2, 4), {}, {}},
                                 {"group", all.subspan(6, 1), {}, {}}});
  }
  void infer() {
    std::vector<TensorInfo> infos;
    for (const Tensor &t : operands)
      infos.push_back(TensorInfo::make(t.type, {t.dims.begin(), t.dims.end()}));
    InferContext ctx;
    ctx.in = infos;
    ctx.attrs = Attrs(attrs);
    ctx.out.resize(1);
    if (findOp(op())->infer(ctx) != InferStatus::Ok)
      std::fprintf(stderr, "%s\n", ctx.error.c_str());
    size_t count = 1;
    for (const Dim &d : ctx.out[0].dims) {
      yDims.push_back(d.value());
      count *= size_t(d.value());
    }
    y.resize(count);
  }

  uint8_t expected(int64_t at) const {
    int64_t o = at % c.outputs, pixel = at / c.outputs, width = c.isMatmul ? 1 : yDims[2],
            per = c.inputs / c.group;
    int64_t oy = pixel / width, ox = pixel % width, sum = 0;
    for (int64_t ky = 0; ky < c.kernel; ++ky)
      for (int64_t kx = 0; kx < c.kernel; ++kx) {
        int64_t iy = oy * c.stride - c.kernel / 2 + ky, ix = ox * c.stride - c.kernel / 2 + kx;
        if (iy < 0 || iy >= c.height || ix < 0 || ix >= c.width)
          continue;
        for (int64_t i = 0; i < per; ++i)
          sum += (int64_t(operands[0].bytes[size_t((iy * c.width + ix) * c.inputs +
                                                   o / (c.outputs / c.group) * per + i)]) -
                  120) *
                 int8_t(weights[size_t(((o * per + i) * c.kernel + ky) * c.kernel + kx)]);
      }
    float value = float(sum) * (number(1, 0) * number(4, o) / number(6, 0)) + number(8, o) / number(6, 0);
    return uint8_t(std::clamp(std::nearbyint(value) + 128, 0.0f, 255.0f));
  }

  Case c;
  std::vector<Tensor> operands;
  std::vector<std::byte> weights, scratch, shared;
  std::vector<uint8_t> y;
  std::vector<int64_t> yDims, numbers;
  const char *layout = "";
  std::vector<Attr> attrs;
  std::vector<TensorView> in, out;
  KernelCall call;
  KernelWork work;
  const Kernel *row = nullptr;
};

double quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[size_t(q * double(v.size() - 1))];
}

bool measure(const Case &c, Isa isa, double seconds) {
  Runner runner(c, isa);
  runner.run();
  bool isRight = runner.isRight();
  std::vector<double> times, shares, byteShares;
  double start = threadSeconds();
  runner.run();
  int repeats = std::max(1, int(1e-3 / std::max(threadSeconds() - start, 1e-7)));
  for (double end = threadSeconds() + seconds; threadSeconds() < end || times.size() < 5;) {
    double peak = bench::integerPeak(isa, isa >= Isa::Avx512), bytePeak = bench::integerPeak(isa, true);
    double begin = threadSeconds();
    for (int i = 0; i < repeats; ++i)
      runner.run();
    times.push_back((threadSeconds() - begin) / repeats);
    shares.push_back(runner.flops() / times.back() /
                     std::max(peak, bench::integerPeak(isa, isa >= Isa::Avx512)));
    byteShares.push_back(runner.flops() / times.back() / bytePeak);
  }
  double median = quantile(times, 0.5);
  std::printf("%-40s %9.1f us +- %4.1f%%  %6.1f GOP/s  peak %3.0f%% (best %3.0f%%)  of u8 x s8 %3.0f%%  %s\n",
              c.name().c_str(), median * 1e6, (quantile(times, 0.75) - quantile(times, 0.25)) / median * 50,
              runner.flops() / median * 1e-9, quantile(shares, 0.5) * 100, quantile(shares, 1) * 100,
              quantile(byteShares, 0.5) * 100, runner.kernel());
  if (!isRight)
    std::printf("  WRONG\n");
  std::fflush(stdout);
  return isRight;
}

constexpr Case kCases[] = {
    {true, 512, 1, 512, 512},
    {true, 1024, 1, 1024, 1024},
    {true, 128, 1, 768, 3072},
    {true, 128, 1, 384, 1536},
    {true, 1, 1, 1024, 1024},
    {true, 8, 1, 1024, 1024},
    {false, 56, 56, 64, 256},
    {false, 56, 56, 256, 64},
    {false, 14, 14, 1024, 256},
    {false, 7, 7, 512, 2048},
    {false, 56, 56, 64, 64, 3},
    {false, 28, 28, 128, 128, 3},
    {false, 14, 14, 256, 256, 3},
    {false, 7, 7, 512, 512, 3},
    {false, 224, 224, 3, 64, 7, 2},
    {false, 112, 112, 32, 32, 3, 1, 32},
    {false, 56, 56, 144, 144, 3, 1, 144},
    {false, 14, 14, 576, 576, 5, 2, 576},
};

} // namespace

int main(int argc, char **argv) {
  const std::optional<BenchOptions> options = parseBenchOptions("bench_integers", 0.5, argc, argv);
  if (!options)
    return 1;
  return runBench(*options, kCases, [](const Case &c) { return c.name(); }, measure);
}
