// Speed of the f32 contractions on one thread: matmul, convolution, depthwise and transposed convolution.
//
//   bench_contractions [FILTER] [--isa LEVEL] [--seconds S] [--list]
//
// Each case is first checked against a sum in f64 at 200 of its outputs. Then runs alternate with the
// machine's peak of multiply-adds (or, marked bf16, of products of those), measured by the same thread, so
// that both see the same clock and neighbours; time is the thread's own. Printed per case: shape, median time
// with the quartiles' distance, GFLOP/s of the median, and the median and best share of the peak. Exit code 3
// if a result is wrong.
#include "bench/kernels/options.h"
#include "bench/kernels/peak.h"
#include "kernels/common/catalogue.h"
#include "kernels/common/kernel.h"
#include "kernels/common/numeric.h"
#include "runtime/format/PackedLayout.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace dspark;

// Floats at a cache line's begin, as the runtime allocates them.
template <typename T> struct LineAllocator {
  using value_type = T;
  T *allocate(size_t n) { return static_cast<T *>(::operator new(n * sizeof(T), std::align_val_t(64))); }
  void deallocate(T *p, size_t) { ::operator delete(p, std::align_val_t(64)); }
  bool operator==(const LineAllocator &) const { return true; }
};
using Floats = std::vector<float, LineAllocator<float>>;

struct Tensor {
  std::vector<int64_t> dims;
  Floats values;
  TensorView view() { return {values.data(), dims.data(), int32_t(dims.size()), DType::F32}; }
};

std::mt19937 rng(1);

Tensor random(std::vector<int64_t> dims) {
  int64_t count = 1;
  for (int64_t d : dims)
    count *= d;
  std::uniform_real_distribution<float> draw(-1, 1);
  Tensor t{std::move(dims), Floats(size_t(count))};
  for (float &v : t.values)
    v = draw(rng);
  return t;
}

// One convolution or product: w is [outputs, inputs / group, kernel, kernel] on x [1, height, width, inputs].
// A product [M, K] x [K, N] is a 1x1 convolution of M pixels, and is run as matmul.
struct Case {
  const char *op;
  int64_t height, width, inputs, outputs, kernel = 1, stride = 1, group = 1;
  bool isBf16 = false; // both operands are rounded to it

  bool isMatmul() const { return !std::strcmp(op, "matmul"); }
  bool isTransposed() const { return !std::strcmp(op, "conv_transpose"); }
  bool isDepthwise() const { return group > 1 && group == inputs && group == outputs; }
  int64_t pad() const { return isTransposed() ? 0 : kernel / 2; }
  std::string name() const {
    char text[160];
    if (isMatmul())
      std::snprintf(text, sizeof(text), "matmul %lldx%lldx%lld", (long long)(height * width),
                    (long long)outputs, (long long)inputs);
    else
      std::snprintf(text, sizeof(text), "%s %lldx%lld k%lld s%lld %lld->%lld%s", op, (long long)height,
                    (long long)width, (long long)kernel, (long long)stride, (long long)inputs,
                    (long long)outputs,
                    isDepthwise() ? " depthwise"
                    : isBf16      ? " bf16"
                                  : "");
    return text;
  }
};

class Runner {
public:
  Runner(const Case &c, Isa isa) : c(c) {
    x = random(c.isMatmul() ? std::vector{c.height * c.width, c.inputs}
                            : std::vector<int64_t>{1, c.height, c.width, c.inputs});
    std::vector<int64_t> wDims = {c.outputs, c.inputs / c.group, c.kernel, c.kernel};
    if (c.isTransposed())
      wDims = {c.inputs, c.outputs, c.kernel, c.kernel};
    w = random(c.isMatmul() ? std::vector{c.inputs, c.outputs} : wDims);
    bias = random({c.outputs});
    pack();
    setAttrs();
    infer();
    in = {x.view(), packed.view(), bias.view()};
    out = {y.view()};
    call.in = in;
    call.out = out;
    call.attrs = Attrs(attrs);
    row = selectKernel(c.op, call, isa);
    row->prepare(call, work);
    scratch.resize(work.scratchPerThread / 4);
    shared.resize(work.scratchShared / 4);
  }

  void run() {
    for (int phase = 0; phase < work.phases; ++phase)
      row->run(call, work, {0, work.tiles[phase], phase, 0, bytes(scratch), bytes(shared)});
  }

  // The largest error at some outputs, in units of the bound K * eps * sum|x w|, x and w as multiplied.
  double error() {
    double worst = 0;
    for (int i = 0; i < 200; ++i) {
      size_t at = rng() % y.values.size();
      double magnitude = 0, want = expected(int64_t(at), magnitude);
      double bound = double(c.inputs / c.group * c.kernel * c.kernel + 4) / (1 << 24) * (magnitude + 1);
      worst = std::max(worst, std::fabs(double(y.values[at]) - std::max(want, 0.0)) / bound);
    }
    return worst;
  }

  double flops() const { return work.flops; }
  const char *kernel() const { return row->name; }

private:
  static std::byte *bytes(Floats &block) { return reinterpret_cast<std::byte *>(block.data()); }

  void pack() {
    packed.dims = w.dims;
    std::span<const std::byte> from = std::as_bytes(std::span(w.values));
    auto fill = [&](const char *name, const auto &weight) {
      layout = name;
      packed.values.resize(*packedBytes(name, weight) / 4);
      Status status = packWeight(name, weight, from, std::as_writable_bytes(std::span(packed.values)));
      if (!status.isOk())
        std::fprintf(stderr, "%s\n", status.message().c_str());
    };
    if (c.isMatmul())
      fill("panel16", MatrixWeight{1, c.inputs, c.outputs, false, 4});
    else
      fill(c.isDepthwise() ? "depthwise"
           : c.isBf16      ? "bf16"
                           : "panel16",
           ConvWeight{c.group, c.inputs, c.outputs, c.kernel * c.kernel, c.isTransposed()});
  }

  void setAttrs() {
    numbers = {c.stride, c.stride, c.pad(), c.pad(), c.pad(), c.pad(), c.group};
    std::span<const int64_t> all(numbers);
    attrs = {{"packed", {}, {}, layout}, {"activation", {}, {}, "relu"}};
    if (!c.isMatmul())
      attrs.insert(attrs.end(), {{"layout", {}, {}, "nhwc"},
                                 {"strides", all.subspan(0, 2), {}, {}},
                                 {"pads", all.subspan(2, 4), {}, {}},
                                 {"group", all.subspan(6, 1), {}, {}}});
  }

  void infer() {
    std::vector<TensorInfo> infos;
    for (const Tensor *t : {&x, &w, &bias})
      infos.push_back(TensorInfo::make(DType::F32, {t->dims.begin(), t->dims.end()}));
    InferContext ctx;
    ctx.in = infos;
    ctx.attrs = Attrs(attrs);
    ctx.out.resize(1);
    if (findOp(c.op)->infer(ctx) != InferStatus::Ok)
      std::fprintf(stderr, "%s\n", ctx.error.c_str());
    int64_t count = 1;
    for (const Dim &d : ctx.out[0].dims) {
      y.dims.push_back(d.value());
      count *= d.value();
    }
    y.values.resize(size_t(count));
  }

  double multiplied(float value) const { return double(c.isBf16 ? bf16ToF32(f32ToBf16(value)) : value); }

  double expected(int64_t at, double &magnitude) const {
    int64_t o = at % c.outputs, pixel = at / c.outputs;
    double sum = double(bias.values[size_t(o)]);
    auto add = [&](int64_t inPixel, int64_t weight, int64_t channel) {
      double term =
          multiplied(x.values[size_t(inPixel * c.inputs + channel)]) * multiplied(w.values[size_t(weight)]);
      sum += term;
      magnitude += std::fabs(term);
    };
    if (c.isMatmul()) {
      for (int64_t i = 0; i < c.inputs; ++i)
        add(pixel, i * c.outputs + o, i);
      return sum;
    }
    int64_t outWidth = y.dims[2], oy = pixel / outWidth, ox = pixel % outWidth, per = c.inputs / c.group;
    for (int64_t ky = 0; ky < c.kernel; ++ky)
      for (int64_t kx = 0; kx < c.kernel; ++kx) {
        int64_t iy = oy * c.stride - c.pad() + ky, ix = ox * c.stride - c.pad() + kx;
        if (c.isTransposed()) {
          if ((oy - ky) % c.stride != 0 || (ox - kx) % c.stride != 0)
            continue;
          iy = (oy - ky) / c.stride;
          ix = (ox - kx) / c.stride;
        }
        if (iy < 0 || iy >= c.height || ix < 0 || ix >= c.width)
          continue;
        for (int64_t i = 0; i < per; ++i) {
          int64_t channel = o / (c.outputs / c.group) * per + i;
          int64_t first = c.isTransposed() ? channel * c.outputs + o : o * per + i;
          add(iy * c.width + ix, (first * c.kernel + ky) * c.kernel + kx, channel);
        }
      }
    return sum;
  }

  Case c;
  Tensor x, w, packed, bias, y;
  const char *layout = "";
  std::vector<int64_t> numbers;
  std::vector<Attr> attrs;
  std::vector<TensorView> in, out;
  KernelCall call;
  KernelWork work;
  const Kernel *row = nullptr;
  Floats scratch, shared;
};

using bench::threadSeconds;
double quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[size_t(q * double(v.size() - 1))];
}

double peakOf(const Case &c, Isa isa) {
  return c.isBf16 ? bench::bf16Peak(isa) : bench::multiplyAddPeak(isa);
}

bool measure(const Case &c, Isa isa, double seconds) {
  Runner runner(c, isa);
  runner.run();
  double error = runner.error();
  std::vector<double> times, shares;
  // Slices of about a millisecond, so that both sides of a pair fit between two interruptions.
  double start = threadSeconds();
  runner.run();
  int repeats = std::max(1, int(1e-3 / std::max(threadSeconds() - start, 1e-7)));
  for (double end = threadSeconds() + seconds; threadSeconds() < end || times.size() < 5;) {
    double peak = peakOf(c, isa);
    double begin = threadSeconds();
    for (int i = 0; i < repeats; ++i)
      runner.run();
    times.push_back((threadSeconds() - begin) / repeats);
    shares.push_back(runner.flops() / times.back() / std::max(peak, peakOf(c, isa)));
  }
  double median = quantile(times, 0.5);
  std::printf("%-46s %9.1f us +- %4.1f%%  %6.1f GFLOP/s  peak %3.0f%% (best %3.0f%%)  %s\n", c.name().c_str(),
              median * 1e6, (quantile(times, 0.75) - quantile(times, 0.25)) / median * 50,
              runner.flops() / median * 1e-9, quantile(shares, 0.5) * 100, quantile(shares, 1) * 100,
              runner.kernel());
  if (error > 1)
    std::printf("  WRONG: %.1f times the bound\n", error);
  std::fflush(stdout);
  return error <= 1;
}

constexpr Case kCases[] = {
    {"matmul", 256, 1, 256, 256},
    {"matmul", 512, 1, 512, 512},
    {"matmul", 1024, 1, 1024, 1024},
    {"matmul", 128, 1, 384, 1536},
    {"matmul", 197, 1, 768, 3072},
    {"matmul", 197, 1, 3072, 768},
    {"matmul", 197, 1, 768, 768},
    {"matmul", 128, 1, 768, 3072},
    {"matmul", 128, 1, 3072, 768},
    {"matmul", 40, 1, 120, 6625},
    {"matmul", 1, 1, 1024, 1024},
    {"matmul", 4, 1, 1024, 1024},
    {"conv", 60, 80, 64, 64},
    {"conv", 15, 20, 512, 512},
    {"conv", 160, 160, 16, 32},
    {"conv", 60, 80, 64, 64, 3},
    {"conv", 30, 40, 256, 256, 3},
    {"conv", 56, 56, 64, 64, 3},
    {"conv", 28, 28, 128, 128, 3},
    {"conv", 14, 14, 256, 256, 3},
    {"conv", 7, 7, 512, 512, 3},
    {"conv", 160, 160, 16, 16, 3},
    {"conv", 80, 80, 32, 32, 3},
    {"conv", 160, 160, 32, 16, 3},
    {"conv", 40, 40, 48, 24, 3},
    {"conv", 56, 56, 64, 256},
    {"conv", 56, 56, 256, 64},
    {"conv", 28, 28, 512, 128},
    {"conv", 14, 14, 1024, 256},
    {"conv", 7, 7, 512, 2048},
    {"conv", 120, 160, 24, 24, 3},
    {"conv", 320, 320, 3, 16, 3, 2},
    {"conv", 160, 160, 32, 32, 3, 1, 32},
    {"conv", 80, 80, 96, 96, 3, 2, 96},
    {"conv", 112, 112, 32, 32, 3, 1, 32},
    {"conv", 112, 112, 96, 96, 3, 2, 96},
    {"conv", 56, 56, 144, 144, 3, 1, 144},
    {"conv", 28, 28, 192, 192, 3, 1, 192},
    {"conv", 14, 14, 576, 576, 3, 1, 576},
    {"conv", 7, 7, 960, 960, 3, 1, 960},
    {"conv", 20, 20, 480, 480, 5, 1, 480},
    {"conv", 224, 224, 3, 64, 7, 2, 1, true},
    {"conv", 56, 56, 64, 64, 3, 1, 1, true},
    {"conv", 28, 28, 128, 128, 3, 1, 1, true},
    {"conv", 14, 14, 256, 256, 3, 1, 1, true},
    {"conv", 7, 7, 512, 512, 3, 1, 1, true},
    {"conv", 56, 56, 64, 256, 1, 1, 1, true},
    {"conv", 56, 56, 256, 64, 1, 1, 1, true},
    {"conv", 28, 28, 512, 128, 1, 1, 1, true},
    {"conv", 14, 14, 1024, 256, 1, 1, 1, true},
    {"conv", 7, 7, 512, 2048, 1, 1, 1, true},
    {"conv_transpose", 80, 80, 24, 24, 2, 2},
    {"conv_transpose", 160, 160, 24, 1, 2, 2},
};

} // namespace

int main(int argc, char **argv) {
  const std::optional<BenchOptions> options = parseBenchOptions("bench_contractions", 0.5, argc, argv);
  if (!options)
    return 1;
  return runBench(*options, kCases, [](const Case &c) { return c.name(); }, measure);
}
