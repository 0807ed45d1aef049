// Layer and RMS normalisation. Each row (the dims from `axis` on) is read three times while it is in the
// first cache: mean, mean square, result. scale and bias usually are one row; where they broadcast in other
// ways, and for f64, the scalar kernel walks their strides.
#include "kernels/common/byte_tiles.h"
#include "kernels/common/operand.h"
#include "kernels/norm/float_norm.h"
#include "kernels/norm/rows.h"
#include "kernels/norm/rows_as_float.h"
#include <cmath>

namespace dspark::norm_ops {
namespace {

struct LayerState {
  int64_t rows, size;
  double epsilon;
  bool isRms;
};

int axisOf(const KernelCall &call) {
  int64_t axis = call.attrs.i("axis", -1);
  return int(axis < 0 ? axis + call.in[0].rank : axis);
}

void prepareAny(const KernelCall &call, KernelWork &work) {
  const TensorView &x = call.in[0];
  int axis = axisOf(call);
  LayerState &s = work.make<LayerState>();
  s = {x.elements(0, axis), x.elements(axis, x.rank), call.attrs.f("epsilon", 1e-5),
       call.attrs.s("kind", "layer") == "rms"};
  int64_t elements = x.elements();
  work.tiles[0] = uint32_t(std::clamp<int64_t>(elements / 8192, 1, std::clamp<int64_t>(s.rows, 1, 4096)));
  work.flops = double(elements) * 8;
  work.bytes = double(dtypeBytes(x.type, elements)) * 2;
}

// The operand is absent, or one row: its dims before the axis are 1, the others those of x.
bool isRow(const KernelCall &call, size_t i) {
  if (!call.has(i))
    return true;
  const TensorView &x = call.in[0], &scale = call.in[i];
  int rest = x.rank - axisOf(call);
  for (int d = 0; d < scale.rank; ++d) {
    int back = scale.rank - d; // counted from the last dim
    if (scale.dims[d] != (back > rest ? 1 : x.dims[x.rank - back]))
      return false;
  }
  for (int back = scale.rank + 1; back <= rest; ++back)
    if (x.dims[x.rank - back] != 1)
      return false;
  return true;
}

void storeStatistic(const KernelCall &call, size_t i, int64_t row, double value) {
  if (i < call.out.size() && call.out[i].present())
    dispatchFloat(call.out[i].type, [&]<typename T>() { call.out[i].as<T>()[row] = fromReal<T>(value); });
}

// --- rows in f32 ---

bool acceptsRows(const KernelCall &call) {
  auto isNarrow = [](DType type) { return type == DType::F32 || isHalf(type); };
  for (size_t i = 0; i < 3; ++i)
    if (call.has(i) && !isNarrow(call.in[i].type))
      return false;
  return isRow(call, 1) && isRow(call, 2);
}

void prepareRows(const KernelCall &call, KernelWork &work) {
  prepareAny(call, work);
  work.scratchPerThread = size_t(work.get<LayerState>().size) * 3 * sizeof(float);
}

template <Isa isa> void runRows(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const LayerState &s = work.get<LayerState>();
  RowRange rows(s.rows, work.tiles[0], part);
  float *buffer = reinterpret_cast<float *>(part.scratch);
  const FloatNorm &simd = floatNorm(isa);
  RowsAsFloat asFloat(isa);
  const float *scale = call.has(1) ? asFloat.load(call.in[1], 0, s.size, buffer + s.size) : nullptr;
  const float *bias = call.has(2) ? asFloat.load(call.in[2], 0, s.size, buffer + 2 * s.size) : nullptr;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const float *x = asFloat.load(call.in[0], row * s.size, s.size, buffer);
    float *y = asFloat.target(call.out[0], row * s.size, buffer);
    float mean = s.isRms ? 0.0f : simd.mean(x, s.size);
    float inverse = 1.0f / std::sqrt(simd.meanSquare(x, s.size, mean) + float(s.epsilon));
    simd.normalize(x, y, s.size, mean, inverse, scale, bias);
    asFloat.store(call.out[0], row * s.size, s.size, y);
    storeStatistic(call, 1, row, mean);
    storeStatistic(call, 2, row, inverse);
  }
}

// --- scalar ---

bool acceptsAny(const KernelCall &call) { return isPlainFloat(call.in[0].type); }

// The element of operand i that belongs to element k of x, both row-major.
double broadcastAt(const KernelCall &call, size_t i, int64_t k) {
  const TensorView &x = call.in[0], &scale = call.in[i];
  int64_t at = 0, stride = 1;
  for (int d = x.rank - 1; d >= 0; --d) {
    int own = d - (x.rank - scale.rank);
    if (own < 0)
      break;
    at += scale.dims[own] == 1 ? 0 : k % x.dims[d] * stride;
    stride *= scale.dims[own];
    k /= x.dims[d];
  }
  return realAt(scale, at);
}

void runAny(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const LayerState &s = work.get<LayerState>();
  RowRange rows(s.rows, work.tiles[0], part);
  dispatchFloat(call.in[0].type, [&]<typename T>() {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const T *x = call.in[0].as<const T>() + row * s.size;
      T *y = call.out[0].as<T>() + row * s.size;
      double mean = 0, square = 0;
      for (int64_t i = 0; i < s.size && !s.isRms; ++i)
        mean += double(x[i]);
      mean /= double(s.size);
      for (int64_t i = 0; i < s.size; ++i)
        square += (double(x[i]) - mean) * (double(x[i]) - mean);
      double inverse = 1 / std::sqrt(square / double(s.size) + s.epsilon);
      for (int64_t i = 0; i < s.size; ++i) {
        double v = (double(x[i]) - mean) * inverse;
        v = call.has(1) ? v * broadcastAt(call, 1, row * s.size + i) : v;
        v = call.has(2) ? v + broadcastAt(call, 2, row * s.size + i) : v;
        y[i] = fromReal<T>(v);
      }
      storeStatistic(call, 1, row, mean);
      storeStatistic(call, 2, row, inverse);
    }
  });
}

constexpr Kernel kRows[] = {
    {"layer_norm", "layer_norm_float_avx512", Isa::Avx512, acceptsRows, prepareRows, runRows<Isa::Avx512>},
    {"layer_norm", "layer_norm_float_avx2", Isa::Avx2, acceptsRows, prepareRows, runRows<Isa::Avx2>},
    {"layer_norm", "layer_norm_float", Isa::Baseline, acceptsRows, prepareRows, runRows<Isa::Baseline>},
    {"layer_norm", "layer_norm_any", Isa::Baseline, acceptsAny, prepareAny, runAny},
};

} // namespace

std::span<const Kernel> layerNormRows() { return kRows; }

} // namespace dspark::norm_ops
