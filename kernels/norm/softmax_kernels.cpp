// Softmax, log-softmax and hardmax over one axis: x is [outer, size, inner].
//
//   inner = 1: a row per call, f32 with SIMD, 16-bit floats through f32 buffers
//   inner > 1: f32 columns side by side
//   all else (f64, hardmax): scalar lines
#include "kernels/common/byte_tiles.h"
#include "kernels/norm/float_norm.h"
#include "kernels/norm/rows.h"
#include "kernels/norm/rows_as_float.h"
#include <cmath>

namespace dspark::norm_ops {
namespace {

constexpr int64_t kColumns = 64; // columns per call: a multiple of every vector's lanes

struct SoftmaxState {
  int64_t outer, size, inner, units;
  bool isLog, isHard;
};

SoftmaxState describe(const KernelCall &call) {
  const TensorView &x = call.in[0];
  SoftmaxState s = {1,
                    1,
                    1,
                    0,
                    call.attrs.s("kind", "softmax") == "log_softmax",
                    call.attrs.s("kind", "softmax") == "hardmax"};
  if (x.rank > 0) {
    int64_t axis = call.attrs.i("axis", -1);
    axis += axis < 0 ? x.rank : 0;
    s.outer = x.elements(0, int(axis));
    s.size = x.dims[axis];
    s.inner = x.elements(int(axis) + 1, x.rank);
  }
  return s;
}

void setWork(const KernelCall &call, const SoftmaxState &s, KernelWork &work) {
  int64_t elements = call.in[0].elements();
  work.tiles[0] = uint32_t(std::clamp<int64_t>(elements / 8192, 1, std::clamp<int64_t>(s.units, 1, 4096)));
  work.flops = double(elements) * 20;
  work.bytes = double(dtypeBytes(call.in[0].type, elements)) * 2;
}

// --- SIMD ---

bool acceptsSimd(const KernelCall &call) {
  SoftmaxState s = describe(call);
  return !s.isHard && (call.in[0].type == DType::F32 || (isHalf(call.in[0].type) && s.inner == 1));
}

void prepareSimd(const KernelCall &call, KernelWork &work) {
  SoftmaxState &s = work.make<SoftmaxState>() = describe(call);
  s.units = s.outer * ((s.inner + kColumns - 1) / kColumns);
  setWork(call, s, work);
  if (call.in[0].type != DType::F32)
    work.scratchPerThread = size_t(s.size) * sizeof(float);
}

template <Isa isa> void runSimd(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const SoftmaxState &s = work.get<SoftmaxState>();
  RowRange units(s.units, work.tiles[0], part);
  float *buffer = reinterpret_cast<float *>(part.scratch);
  const FloatNorm &simd = floatNorm(isa);
  RowsAsFloat asFloat(isa);
  int64_t strips = (s.inner + kColumns - 1) / kColumns;
  for (int64_t unit = units.begin; unit < units.end; ++unit) {
    if (s.inner == 1) {
      const float *x = asFloat.load(call.in[0], unit * s.size, s.size, buffer);
      float *y = asFloat.target(call.out[0], unit * s.size, buffer);
      simd.softmaxRow(x, y, s.size, s.isLog);
      asFloat.store(call.out[0], unit * s.size, s.size, y);
      continue;
    }
    int64_t column = unit % strips * kColumns, at = unit / strips * s.size * s.inner + column;
    simd.softmaxLanes(call.in[0].as<const float>() + at, call.out[0].as<float>() + at, s.size, s.inner,
                      std::min(kColumns, s.inner - column), s.isLog);
  }
}

// --- scalar ---

bool acceptsAny(const KernelCall &call) { return isPlainFloat(call.in[0].type); }

void prepareAny(const KernelCall &call, KernelWork &work) {
  SoftmaxState &s = work.make<SoftmaxState>() = describe(call);
  s.units = s.outer * s.inner;
  setWork(call, s, work);
}

// One at the first of the largest elements, zero elsewhere.
template <typename T> void hardmaxLine(const T *x, T *y, const SoftmaxState &s) {
  using A = Accumulator<T>;
  int64_t best = 0;
  for (int64_t i = 1; i < s.size; ++i)
    if (A(x[i * s.inner]) > A(x[best * s.inner]))
      best = i;
  for (int64_t i = 0; i < s.size; ++i)
    y[i * s.inner] = T(A(i == best));
}

template <typename T> void softmaxLine(const T *x, T *y, const SoftmaxState &s) {
  double top = -INFINITY, sum = 0;
  for (int64_t i = 0; i < s.size; ++i) {
    double v = double(x[i * s.inner]);
    top = v > top || v != v ? v : top;
  }
  for (int64_t i = 0; i < s.size; ++i)
    sum += std::exp(double(x[i * s.inner]) - top);
  double logSum = std::log(sum);
  for (int64_t i = 0; i < s.size; ++i) {
    double shifted = double(x[i * s.inner]) - top;
    y[i * s.inner] = fromReal<T>(s.isLog ? shifted - logSum : std::exp(shifted) / sum);
  }
}

void runAny(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const SoftmaxState &s = work.get<SoftmaxState>();
  RowRange lines(s.units, work.tiles[0], part);
  dispatchFloat(call.in[0].type, [&]<typename T>() {
    for (int64_t line = lines.begin; line < lines.end; ++line) {
      int64_t at = line / s.inner * s.size * s.inner + line % s.inner;
      const T *x = call.in[0].as<const T>() + at;
      T *y = call.out[0].as<T>() + at;
      if (s.isHard)
        hardmaxLine(x, y, s);
      else
        softmaxLine(x, y, s);
    }
  });
}

constexpr Kernel kRows[] = {
    {"softmax", "softmax_float_avx512", Isa::Avx512, acceptsSimd, prepareSimd, runSimd<Isa::Avx512>},
    {"softmax", "softmax_float_avx2", Isa::Avx2, acceptsSimd, prepareSimd, runSimd<Isa::Avx2>},
    {"softmax", "softmax_float", Isa::Baseline, acceptsSimd, prepareSimd, runSimd<Isa::Baseline>},
    {"softmax", "softmax_any", Isa::Baseline, acceptsAny, prepareAny, runAny},
};

} // namespace

std::span<const Kernel> softmaxRows() { return kRows; }

} // namespace dspark::norm_ops
