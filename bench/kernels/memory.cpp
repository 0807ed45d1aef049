// Speed of attention and of the kernels that move or map tensors, on one thread.
//
//   bench_memory [FILTER] [--isa LEVEL] [--seconds S] [--list]
//
// Each case is first checked against the operator's reference kernel, bit for bit where elements are only
// moved, else within the case's tolerance, on some of the reference's tiles. Then runs alternate with the
// limit, measured by the same thread: the multiply-add peak for attention of many rows (or that of products
// of bf16), for all others the time of plain vector loops that read and write as many bytes in buffers of the
// same size. Printed per case: median time with the quartiles' distance, GFLOP/s or GB/s of the median,
// median and best share of the limit. Exit code 3 if a result is wrong.
#include "bench/kernels/bandwidth.h"
#include "bench/kernels/options.h"
#include "bench/kernels/peak.h"
#include "kernels/common/catalogue.h"
#include "kernels/common/element.h"
#include "kernels/common/kernel.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace dspark;

struct Operand {
  DType type = DType::Undefined;
  std::vector<int64_t> dims;
  double low = -1, high = 1; // what is drawn; integers include high
  std::vector<int64_t> contents = {};
};
struct Attribute {
  const char *name;
  std::vector<int64_t> ints = {};
  std::string text = {};
  double real = NAN;
};
enum class Limit { Bandwidth, MultiplyAdd, Bf16 };

struct Case {
  std::string name;
  const char *op;
  std::vector<Operand> in;
  std::vector<Attribute> attrs = {};
  size_t results = 1;
  Limit limit = Limit::Bandwidth;
  double tolerance = 0;
  /// Bytes that the operation must read and write where that is not all of its operands.
  double readBytes = 0, writtenBytes = 0;
};

std::mt19937 rng(1);

struct Tensor {
  DType type = DType::Undefined;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;

  Tensor(DType type, std::vector<int64_t> dims) : type(type), dims(std::move(dims)) {
    bytes.resize(size_t(dtypeBytes(type, elements())) + 64, std::byte(0xcd));
  }
  int64_t elements() const {
    int64_t n = type == DType::Undefined ? 0 : 1;
    for (int64_t d : dims)
      n *= d;
    return n;
  }
  std::byte *data() {
    return reinterpret_cast<std::byte *>((reinterpret_cast<uintptr_t>(bytes.data()) + 63) & ~uintptr_t(63));
  }
  TensorView view() {
    return {type == DType::Undefined ? nullptr : data(), dims.data(), int32_t(dims.size()), type};
  }
};

Tensor draw(const Operand &o) {
  Tensor t(o.type, o.dims);
  std::uniform_real_distribution<double> real(o.low, o.high);
  dispatchNumber(o.type, [&]<typename E>() {
    for (int64_t i = 0, n = t.elements(); i < n; ++i) {
      double v = o.contents.empty() ? real(rng) : double(o.contents[size_t(i)]);
      if constexpr (std::is_integral_v<E>)
        reinterpret_cast<E *>(t.data())[i] = E(std::lround(v));
      else
        reinterpret_cast<E *>(t.data())[i] = E(float(v));
    }
  });
  return t;
}

class Runner {
public:
  Runner(const Case &c, Isa isa) : c(c) {
    for (const Operand &o : c.in)
      inputs.push_back(draw(o));
    for (const Attribute &a : c.attrs) {
      reals.push_back(a.real);
      bool isReal = !std::isnan(a.real);
      attrs.push_back({a.name, a.ints, isReal ? std::span(&reals.back(), 1) : std::span<double>(), a.text});
    }
    outputs = infer();
    expected = outputs;
    for (Tensor &t : inputs)
      inViews.push_back(t.view());
    call = callFor(outputs, outViews);
    row = selectKernel(c.op, call, isa);
    row->prepare(call, work);
    scratch.resize(work.scratchPerThread + 128);
    shared.resize(work.scratchShared + 128);
  }

  void run() {
    for (int phase = 0; phase < work.phases; ++phase)
      row->run(call, work, {0, work.tiles[phase], phase, 0, aligned(scratch), aligned(shared)});
  }

  /// The largest error relative to the tolerance; 0 where all bytes are equal.
  double error() {
    runReference();
    double worst = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      int64_t n = outputs[i].elements(), size = dtypeBits(outputs[i].type) / 8;
      for (int64_t k = 0; k < n; ++k)
        worst = std::max(worst, elementError(outputs[i], expected[i], k, size));
    }
    return worst;
  }

  double flops() const { return work.flops; }
  int64_t readBytes() const {
    double bytes = c.readBytes;
    for (size_t i = 0; i < inputs.size() && c.readBytes == 0; ++i)
      bytes += double(dtypeBytes(inputs[i].type, inputs[i].elements()));
    return int64_t(bytes);
  }
  int64_t writtenBytes() const {
    double bytes = c.writtenBytes;
    for (size_t i = 0; i < outputs.size() && c.writtenBytes == 0; ++i)
      bytes += double(dtypeBytes(outputs[i].type, outputs[i].elements()));
    return int64_t(bytes);
  }
  const char *kernel() const { return row->name; }

private:
  static std::byte *aligned(std::vector<std::byte> &block) {
    return reinterpret_cast<std::byte *>((reinterpret_cast<uintptr_t>(block.data()) + 63) & ~uintptr_t(63));
  }

  std::vector<Tensor> infer() {
    std::vector<TensorInfo> infos;
    for (size_t i = 0; i < inputs.size(); ++i) {
      TensorInfo info;
      if (inputs[i].type != DType::Undefined)
        info = TensorInfo::make(inputs[i].type, {inputs[i].dims.begin(), inputs[i].dims.end()});
      info.hasContents = !c.in[i].contents.empty();
      for (int64_t v : c.in[i].contents)
        info.ints.push_back(Dim(v));
      infos.push_back(std::move(info));
    }
    InferContext ctx;
    ctx.in = infos;
    ctx.attrs = Attrs(attrs);
    ctx.out.resize(c.results);
    if (findOp(c.op)->infer(ctx) != InferStatus::Ok) {
      std::fprintf(stderr, "%s: %s\n", c.name.c_str(), ctx.error.c_str());
      std::exit(1); // the case is wrong
    }
    std::vector<Tensor> results;
    for (const TensorInfo &info : ctx.out) {
      std::vector<int64_t> dims;
      for (const Dim &d : info.dims)
        dims.push_back(d.value());
      results.emplace_back(info.type, dims);
    }
    return results;
  }

  KernelCall callFor(std::vector<Tensor> &results, std::vector<TensorView> &views) {
    for (Tensor &t : results)
      views.push_back(t.view());
    KernelCall made;
    made.in = inViews;
    made.out = views;
    made.attrs = Attrs(attrs);
    return made;
  }

  // The last baseline row, on up to 64 of its tiles; the others leave 0xcd bytes, which are not compared.
  void runReference() {
    std::vector<TensorView> views;
    KernelCall reference = callFor(expected, views);
    const Kernel *last = nullptr;
    for (const Kernel &k : allKernels())
      if (k.op == std::string_view(c.op) && k.isa == Isa::Baseline && (!k.accepts || k.accepts(reference)))
        last = &k;
    auto plan = std::make_unique<KernelWork>();
    last->prepare(reference, *plan);
    std::vector<std::byte> own(plan->scratchPerThread + 128), common(plan->scratchShared + 128);
    for (int phase = 0; phase < plan->phases; ++phase) {
      uint32_t tiles = plan->tiles[phase], step = plan->phases > 1 ? 1 : std::max(tiles / 64, 1u);
      for (uint32_t t = 0; t < tiles; t += step)
        last->run(reference, *plan, {t, t + 1, phase, 0, aligned(own), aligned(common)});
    }
  }

  double elementError(Tensor &got, Tensor &want, int64_t k, int64_t size) const {
    const std::byte *a = got.data() + k * size, *b = want.data() + k * size;
    if (std::memcmp(a, b, size_t(size)) == 0)
      return 0;
    if (std::all_of(b, b + size, [](std::byte v) { return v == std::byte(0xcd); }))
      return 0;
    if (c.tolerance == 0)
      return 2;
    double x = 0, y = 0;
    loadAsF64(got.type, got.data(), k, 1, &x);
    loadAsF64(want.type, want.data(), k, 1, &y);
    double difference = std::fabs(x - y) / c.tolerance;
    return difference == difference ? difference : 2;
  }

  const Case &c;
  std::vector<Tensor> inputs, outputs, expected;
  std::vector<Attr> attrs;
  std::deque<double> reals;
  std::vector<TensorView> inViews, outViews;
  KernelCall call;
  KernelWork work;
  const Kernel *row = nullptr;
  std::vector<std::byte> scratch, shared;
};

using bench::threadSeconds;
double quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[size_t(q * double(v.size() - 1))];
}
template <typename F> double secondsOf(int repeats, F f) {
  double begin = threadSeconds();
  for (int i = 0; i < repeats; ++i)
    f();
  return (threadSeconds() - begin) / repeats;
}

bool measure(const Case &c, Isa isa, double seconds) {
  Runner runner(c, isa);
  runner.run();
  double error = runner.error();
  bool isCompute = c.limit != Limit::Bandwidth;
  bench::Traffic traffic(isa, runner.readBytes(), runner.writtenBytes());
  auto limit = [&](int repeats) {
    if (isCompute)
      return runner.flops() / (c.limit == Limit::Bf16 ? bench::bf16Peak(isa) : bench::multiplyAddPeak(isa));
    return secondsOf(repeats, [&] { traffic.run(); });
  };
  // Slices of about a millisecond, so that both sides of a pair fit between two interruptions.
  double once = secondsOf(1, [&] { runner.run(); });
  int repeats = std::max(1, int(1e-3 / std::max(once, 1e-7)));
  std::vector<double> times, shares;
  for (double end = threadSeconds() + seconds; threadSeconds() < end || times.size() < 5;) {
    double before = limit(repeats);
    times.push_back(secondsOf(repeats, [&] { runner.run(); }));
    shares.push_back((before + limit(repeats)) / 2 / times.back());
  }
  double median = quantile(times, 0.5);
  double rate = isCompute ? runner.flops() : double(runner.readBytes() + runner.writtenBytes());
  std::printf("%-44s %10.1f us +- %4.1f%%  %7.2f %s  limit %3.0f%% (best %3.0f%%)  %s\n", c.name.c_str(),
              median * 1e6, (quantile(times, 0.75) - quantile(times, 0.25)) / median * 50,
              rate / median * 1e-9, isCompute ? "GFLOP/s" : "GB/s   ", quantile(shares, 0.5) * 100,
              quantile(shares, 1) * 100, runner.kernel());
  if (error > 1)
    std::printf("  WRONG: %.1f times the tolerance\n", error);
  std::fflush(stdout);
  return error <= 1;
}

// --- cases ---

using T = DType;

Operand shape(std::vector<int64_t> values) {
  auto count = int64_t(values.size());
  return {T::I64, {count}, 0, 0, std::move(values)};
}
Operand normal(std::vector<int64_t> dims, DType type = T::F32) { return {type, std::move(dims)}; }

const char *typeName(DType type) { return type == T::F32 ? "f32" : type == T::F16 ? "f16" : "bf16"; }

Case attention(DType type, int64_t heads, int64_t kvHeads, int64_t queries, int64_t keys, int64_t size,
               bool causal) {
  int64_t past = causal ? keys - queries : 0;
  char name[128];
  std::snprintf(name, sizeof(name), "attention %s %lldx%lld heads %lld/%lld size %lld%s", typeName(type),
                (long long)queries, (long long)keys, (long long)heads, (long long)kvHeads, (long long)size,
                causal ? " causal" : "");
  Case c{name, "attention", {{type, {1, heads, queries, size}}}, {{"is_causal", {causal}}}};
  for (int i = 0; i < 2; ++i)
    c.in.push_back({type, {1, kvHeads, keys - past, size}});
  if (past) {
    c.in.push_back({});
    for (int i = 0; i < 2; ++i)
      c.in.push_back({type, {1, kvHeads, past, size}});
  }
  c.limit = queries > 16 ? Limit::MultiplyAdd : Limit::Bandwidth;
  c.tolerance = type == T::F32 ? 1e-5 : 1e-2;
  return c;
}

// With operands rounded to bf16, where the machine multiplies those.
Case inBf16(Case c) {
  c.name += " bf16";
  c.attrs.push_back({"arithmetic", {}, "bf16"});
  c.limit = Limit::Bf16;
  c.tolerance = 1e-2;
  return c;
}

// The last `queries` tokens of one sequence, whose pages of 16 tokens lie scattered.
Case paged(DType cache, int64_t heads, int64_t kvHeads, int64_t queries, int64_t keys, int64_t size) {
  constexpr int64_t kPage = 16;
  int64_t pages = keys / kPage;
  char name[128];
  std::snprintf(name, sizeof(name), "paged %s %lldx%lld heads %lld/%lld size %lld", typeName(cache),
                (long long)queries, (long long)keys, (long long)heads, (long long)kvHeads, (long long)size);
  Case c{name, "paged_attention", {normal({queries, heads, size})}};
  for (int i = 0; i < 2; ++i)
    c.in.push_back({cache, {pages, kvHeads, kPage, size}});
  c.in.push_back({T::I64, {2}, 0, 0, {0, queries}});
  c.in.push_back({T::I64, {1}, 0, 0, {keys}});
  Operand table{T::I64, {1, pages}};
  for (int64_t i = 0; i < pages; ++i)
    table.contents.push_back(i * 5 % pages); // pages: a power of two
  c.in.push_back(std::move(table));
  c.limit = queries > 16 ? Limit::MultiplyAdd : Limit::Bandwidth;
  c.tolerance = cache == T::F32 ? 1e-5 : 1e-2;
  return c;
}

std::vector<Case> attentionCases() {
  return {
      paged(T::F32, 9, 3, 1, 512, 64),
      paged(T::F32, 9, 3, 1, 4096, 64),
      paged(T::F16, 9, 3, 1, 512, 64),
      paged(T::F16, 9, 3, 1, 4096, 64),
      paged(T::F32, 4, 1, 1, 512, 256),
      paged(T::F32, 4, 1, 1, 4096, 256),
      paged(T::F16, 4, 1, 1, 4096, 256),
      paged(T::F32, 9, 3, 512, 512, 64),
      paged(T::F16, 9, 3, 512, 512, 64),
      attention(T::F32, 2, 2, 1024, 1024, 64, true),
      attention(T::F32, 1, 1, 4096, 4096, 128, true),
      attention(T::F32, 4, 1, 1024, 1024, 64, true),
      attention(T::F16, 2, 2, 1024, 1024, 64, true),
      attention(T::F32, 12, 12, 128, 128, 32, false),
      attention(T::F32, 12, 12, 197, 197, 64, false),
      attention(T::F32, 96, 96, 49, 49, 32, false),
      attention(T::F32, 12, 12, 128, 128, 64, false),
      attention(T::F32, 1, 1, 8192, 8192, 64, true),
      inBf16(attention(T::F32, 2, 2, 1024, 1024, 64, true)),
      inBf16(attention(T::F32, 1, 1, 4096, 4096, 128, true)),
      inBf16(attention(T::F32, 12, 12, 128, 128, 64, false)),
      inBf16(attention(T::F32, 6, 6, 1500, 1500, 64, false)),
      attention(T::F32, 6, 6, 1500, 1500, 64, false),
      attention(T::F32, 8, 8, 1, 1024, 64, true),
      attention(T::F32, 8, 8, 1, 8192, 64, true),
      attention(T::F32, 8, 2, 1, 32768, 64, true),
      attention(T::F16, 8, 2, 1, 32768, 64, true),
      attention(T::F32, 8, 2, 4, 8192, 128, true),
      attention(T::F16, 8, 2, 16, 8192, 128, true),
  };
}

std::vector<Case> mapCases() {
  std::vector<Case> cases;
  // 4 ulp of the largest, e^4.
  for (const char *kind : {"exp", "erf", "tanh", "sigmoid", "gelu", "silu"})
    cases.push_back({std::string("unary ") + kind + " 4096",
                     "unary",
                     {{T::F32, {4096}, -4, 4}},
                     {{"kind", {}, kind}},
                     1,
                     Limit::Bandwidth,
                     1.6e-5});
  for (DType type : {T::F32, T::F16}) {
    double tolerance = type == T::F32 ? 1e-5 : 4e-3;
    std::string name = typeName(type);
    for (int64_t n : {64, 1000, 50000})
      cases.push_back({"softmax " + name + " rows of " + std::to_string(n),
                       "softmax",
                       {{type, {100000 / n, n}, -4, 4}},
                       {{"axis", {-1}}},
                       1,
                       Limit::Bandwidth,
                       tolerance});
    for (const char *kind : {"layer", "rms"})
      cases.push_back({"layer_norm " + name + " " + kind + " 128x768",
                       "layer_norm",
                       {normal({128, 768}, type), normal({768}, type)},
                       {{"kind", {}, kind}},
                       1,
                       Limit::Bandwidth,
                       tolerance});
    cases.push_back({"rotary_embedding " + name + " 1x16x256x64",
                     "rotary_embedding",
                     {normal({1, 16, 256, 64}, type), normal({1, 256, 32}, type), normal({1, 256, 32}, type)},
                     {},
                     1,
                     Limit::Bandwidth,
                     tolerance});
  }
  auto broadcast = [&](const char *op, const char *kind, DType type) {
    return Case{std::string(op) + " " + kind + " " + std::string(dtypeName(type)) + " one-hot 256x384",
                op,
                {{type, {256, 384, 1}, 0, 255}, {type, {32}, 0, 255}},
                {{"kind", {}, kind}}};
  };
  for (DType type : {T::I32, T::I64, T::F32, T::U8}) {
    cases.push_back(broadcast("compare", "eq", type));
    cases.push_back({"compare less " + std::string(dtypeName(type)) + " 1M",
                     "compare",
                     {{type, {1 << 20}, 0, 9}, {type, {1 << 20}, 0, 9}},
                     {{"kind", {}, "lt"}}});
    cases.push_back({"select " + std::string(dtypeName(type)) + " 1M",
                     "select",
                     {{T::Bool, {1 << 20}, 0, 1}, {type, {1 << 20}, 0, 9}, {type, {1 << 20}, 0, 9}}});
  }
  auto cast = [&](DType from, DType to) {
    cases.push_back({"cast " + std::string(dtypeName(from)) + " to " + std::string(dtypeName(to)) + " 1M",
                     "cast",
                     {{from, {1 << 20}, 0, 100}},
                     {{"to", {int64_t(to)}}}});
  };
  cast(T::Bool, T::F32), cast(T::I32, T::F32), cast(T::I64, T::F32), cast(T::F32, T::I64),
      cast(T::F32, T::I32);
  cast(T::F32, T::F16), cast(T::F16, T::F32), cast(T::F32, T::BF16), cast(T::I64, T::I32),
      cast(T::I32, T::I64);
  cast(T::U8, T::F32), cast(T::F32, T::U8), cast(T::F32, T::Bool);
  cases.push_back({"quantize_linear u8 1M",
                   "quantize_linear",
                   {{T::F32, {1 << 20}, -4, 4}, {T::F32, {}, 0.05, 0.05}, {T::U8, {}, 128, 128}}});
  cases.push_back({"dequantize_linear u8 1M",
                   "dequantize_linear",
                   {{T::U8, {1 << 20}, 0, 255}, {T::F32, {}, 0.05, 0.05}, {T::U8, {}, 128, 128}}});
  return cases;
}

std::vector<Case> moveCases() {
  std::vector<Case> cases;
  auto transpose = [&](DType type, std::vector<int64_t> dims, std::vector<int64_t> perm) {
    std::string name = "transpose " + std::string(dtypeName(type));
    for (size_t i = 0; i < dims.size(); ++i)
      name += (i ? "x" : " ") + std::to_string(dims[i]);
    name += " by ";
    for (int64_t axis : perm)
      name += std::to_string(axis);
    cases.push_back({name, "transpose", {{type, dims, 0, 100}}, {{"perm", perm}}});
  };
  for (DType type : {T::F32, T::F16, T::U8, T::I64})
    transpose(type, {1024, 1024}, {1, 0});
  transpose(T::F32, {128, 128}, {1, 0});
  transpose(T::F32, {1, 128, 12, 64}, {0, 2, 1, 3});
  transpose(T::F32, {12, 128, 64}, {0, 2, 1});
  transpose(T::F32, {1, 64, 80, 80}, {0, 2, 3, 1});
  transpose(T::F32, {1, 80, 80, 64}, {0, 3, 1, 2});
  transpose(T::U8, {224, 224, 3}, {2, 0, 1});
  transpose(T::F32, {16, 7, 8, 7, 32}, {0, 2, 1, 3, 4});

  auto reduce = [&](const char *kind, DType type, std::vector<int64_t> dims, std::vector<int64_t> axes,
                    double tolerance) {
    std::string name = std::string("reduce ") + kind + " " + std::string(dtypeName(type));
    for (size_t i = 0; i < dims.size(); ++i)
      name += (i ? "x" : " ") + std::to_string(dims[i]);
    name += " over";
    for (int64_t axis : axes)
      name += " " + std::to_string(axis);
    cases.push_back({name,
                     "reduce",
                     {{type, dims, -1, 1}, shape(axes)},
                     {{"kind", {}, kind}},
                     1,
                     Limit::Bandwidth,
                     tolerance});
  };
  for (int64_t last : {2, 4, 7, 16, 49, 256, 4096})
    reduce("sum", T::F32, {262144 / last, last}, {1}, 1e-3);
  reduce("mean", T::F32, {1, 64, 56, 56}, {2, 3}, 1e-3);
  reduce("max", T::F32, {65536, 4}, {1}, 1e-6);
  reduce("sum", T::F32, {512, 512}, {0}, 1e-3);
  reduce("mean", T::F32, {49, 2048}, {0}, 1e-3);
  reduce("sum", T::F32, {64, 16, 196}, {1}, 1e-3);
  reduce("max", T::F32, {8192, 8, 4}, {1}, 1e-6);
  reduce("sum", T::F16, {512, 512}, {1}, 1);
  for (DType type : {T::F32, T::F16, T::I32})
    cases.push_back({"arg_reduce argmax " + std::string(dtypeName(type)) + " 8x128000",
                     "arg_reduce",
                     {{type, {8, 128000}, -1000, 1000}},
                     {{"kind", {}, "argmax"}, {"axis", {1}}, {"keepdims", {0}}}});
  cases.push_back({"arg_reduce argmax f32 1000x21 ",
                   "arg_reduce",
                   {normal({1000, 21})},
                   {{"kind", {}, "argmax"}, {"axis", {1}}, {"keepdims", {0}}}});
  for (int64_t k : {1, 50})
    cases.push_back({"top_k " + std::to_string(k) + " of 128000",
                     "top_k",
                     {normal({4, 128000}), shape({k})},
                     {{"axis", {-1}}},
                     2});
  cases.push_back({"cumulative sum f32 64x4096",
                   "cumulative",
                   {normal({64, 4096}), shape({1})},
                   {{"kind", {}, "sum"}},
                   1,
                   Limit::Bandwidth,
                   1e-2});
  cases.push_back({"cumulative sum f32 4096x64 over 0",
                   "cumulative",
                   {normal({4096, 64}), shape({0})},
                   {{"kind", {}, "sum"}},
                   1,
                   Limit::Bandwidth,
                   1e-2});
  for (auto [size, channels, kernel] : {std::array<int64_t, 3>{112, 64, 3}, {56, 64, 2}, {28, 256, 2}})
    cases.push_back({"pool max " + std::to_string(kernel) + "x" + std::to_string(kernel) + " s2 of " +
                         std::to_string(size) + "x" + std::to_string(size) + "x" + std::to_string(channels),
                     "pool",
                     {normal({1, size, size, channels})},
                     {{"kind", {}, "max"},
                      {"layout", {}, "nhwc"},
                      {"kernel_shape", {kernel, kernel}},
                      {"strides", {2, 2}}}});

  Operand rows{T::I64, {128}, 0, 29999};
  double rowBytes = 128 * 384 * 4;
  cases.push_back({"gather rows 128 of 30000x384",
                   "gather",
                   {normal({30000, 384}), rows},
                   {},
                   1,
                   Limit::Bandwidth,
                   0,
                   rowBytes});
  cases.push_back({"gather columns 64x256 of 512",
                   "gather",
                   {normal({64, 512}), {T::I64, {256}, 0, 511}},
                   {{"axis", {1}}}});
  cases.push_back(
      {"concat 2x 128x384 on 1", "concat", {normal({128, 384}), normal({128, 384})}, {{"axis", {1}}}});
  cases.push_back(
      {"split 128x1152 in 3", "split", {normal({128, 1152})}, {{"axis", {1}}, {"num_outputs", {3}}}, 3});
  cases.push_back({"pad 1x32x80x80 by 1", "pad", {normal({1, 32, 80, 80}), shape({0, 0, 1, 1, 0, 0, 1, 1})}});
  cases.push_back({"slice 64x1024 every 2nd",
                   "slice",
                   {normal({64, 1024}), shape({0}), shape({1024}), shape({1}), shape({2})}});
  cases.push_back({"slice 512x768 middle",
                   "slice",
                   {normal({512, 768}), shape({256}), shape({512}), shape({1}), shape({1})},
                   {},
                   1,
                   Limit::Bandwidth,
                   0,
                   512 * 256 * 4});
  return cases;
}

std::vector<Case> allCases() {
  std::vector<Case> all;
  for (auto part : {attentionCases, mapCases, moveCases})
    for (Case &c : part())
      all.push_back(std::move(c));
  return all;
}

} // namespace

int main(int argc, char **argv) {
  const std::optional<BenchOptions> options = parseBenchOptions("bench_memory", 0.3, argc, argv);
  if (!options)
    return 1;
  return runBench(*options, allCases(), [](const Case &c) { return c.name; }, measure);
}
