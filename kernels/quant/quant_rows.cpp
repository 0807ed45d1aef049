// Kernels of quantize_linear, dequantize_linear and dynamic_quantize_linear.
#include "kernels/common/broadcast.h"
#include "kernels/common/element.h"
#include "kernels/common/families.h"
#include "kernels/quant/byte_ops.h"
#include "kernels/quant/byte_scale.h"
#include "kernels/quant/granularity.h"
#include "kernels/quant/quant_loops.h"
#include <cmath>

namespace dspark {
namespace {

struct QuantState {
  ScaleMap map;
  const QuantLoops *loops;
  DType precision;  // of the division
  double low, high; // range of an integer result
  bool saturate;
};

template <Isa isa> void prepare(const KernelCall &call, KernelWork &work) {
  auto &state = work.make<QuantState>();
  state.map = ScaleMap(call.in[0], call.in[1], call.attrs);
  state.loops = &quantLoops(isa);
  state.saturate = call.attrs.i("saturate", 1) != 0;
  // Scales that are no floats to divide by (f8e8m0, i32) are divided by in f32.
  DType scale = call.in[1].type;
  bool divides = scale == DType::F32 || scale == DType::F16 || scale == DType::BF16;
  state.precision = DType(call.attrs.i("precision", 0));
  if (state.precision == DType::Undefined)
    state.precision = divides ? scale : DType::F32;
  int bits = dtypeBits(call.out[0].type);
  bool negative = isSigned(call.out[0].type);
  state.low = negative ? -std::ldexp(1.0, bits - 1) : 0;
  state.high = std::ldexp(1.0, negative ? bits - 1 : bits) - 1;
  prepareElementwise(call, work, 2);
}

/// Calls body(first element, run) for the part's elements.
template <typename Body>
void forRuns(const KernelCall &call, const ScaleMap &map, const KernelPart &part, Body body) {
  forElements(call.out[0].elements(), part, kElementwiseTile, [&](int64_t begin, int64_t n) {
    for (int64_t at = begin, end = begin + n; at < end;) {
      ScaleMap::Run run = map.runAt(at, end);
      body(at, run);
      at += run.n;
    }
  });
}

// --- quantize ---

template <typename T> const T *zeroAt(const KernelCall &call, int64_t i) {
  return call.has(2) ? call.in[2].as<T>() + i : nullptr;
}

bool acceptsQuantizeF32(const KernelCall &call) {
  DType to = call.out[0].type, precision = DType(call.attrs.i("precision", 0));
  return call.in[0].type == DType::F32 && call.in[1].type == DType::F32 &&
         (to == DType::U8 || to == DType::I8) && (precision == DType::Undefined || precision == DType::F32);
}
template <typename T>
void quantizeAs(QuantizeLoop<T> loop, const KernelCall &call, const ScaleMap &map, const KernelPart &part) {
  const float *x = call.in[0].as<float>(), *scale = call.in[1].as<float>();
  T *y = call.out[0].as<T>();
  forRuns(call, map, part, [&](int64_t at, ScaleMap::Run run) {
    loop(x + at, scale + run.scale, zeroAt<T>(call, run.scale), run.step, y + at, run.n);
  });
}
void runQuantizeF32(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<QuantState>();
  if (call.out[0].type == DType::U8)
    quantizeAs(state.loops->quantizeU8, call, state.map, part);
  else
    quantizeAs(state.loops->quantizeI8, call, state.map, part);
}

double roundTo(DType type, double value) {
  if (type == DType::F32)
    return float(value);
  return decodeSmall(smallFloat(type), encodeSmall(smallFloat(type), value, false));
}

/// x / scale + zero as a number that the result type then only has to store.
double quantizeValue(const QuantState &state, DType to, double x, double scale, double zero) {
  double quotient = roundTo(state.precision, roundTo(state.precision, x) / roundTo(state.precision, scale));
  if (!isInteger(to))
    return quotient + zero;
  double value = std::nearbyint(quotient) + zero;
  return !(value >= state.low) ? state.low : value > state.high ? state.high : value;
}

/// Scales and zero points of a run, one per element.
struct RunParams {
  double scale[kGatherBlock], zero[kGatherBlock];

  void read(const KernelCall &call, const ScaleMap::Run &run) {
    int64_t n = run.step ? run.n : 1;
    loadAsF64(call.in[1].type, call.in[1].data, run.scale, n, scale);
    if (call.has(2))
      loadAsF64(call.in[2].type, call.in[2].data, run.scale, n, zero);
    else
      std::fill_n(zero, n, 0.0);
  }
};

void runQuantize(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<QuantState>();
  const TensorView &x = call.in[0], &y = call.out[0];
  forElements(y.elements(), part, kGatherBlock, [&](int64_t begin, int64_t n) {
    double block[kGatherBlock];
    loadAsF64(x.type, x.data, begin, n, block);
    RunParams params;
    for (int64_t at = 0; at < n;) {
      ScaleMap::Run run = state.map.runAt(begin + at, begin + n);
      params.read(call, run);
      for (int64_t k = 0; k < run.n; ++k)
        block[at + k] = quantizeValue(state, y.type, block[at + k], params.scale[k * run.step],
                                      params.zero[k * run.step]);
      at += run.n;
    }
    storeFromF64(y.type, y.data, begin, n, block, {.saturate = state.saturate});
  });
}

// --- dequantize ---

bool acceptsDequantizeF32(const KernelCall &call) {
  DType from = call.in[0].type;
  return (from == DType::U8 || from == DType::I8 || from == DType::I32) && call.in[1].type == DType::F32 &&
         call.out[0].type == DType::F32;
}
template <typename T>
void dequantizeAs(DequantizeLoop<T> loop, const KernelCall &call, const ScaleMap &map,
                  const KernelPart &part) {
  const T *x = call.in[0].as<T>();
  const float *scale = call.in[1].as<float>();
  float *y = call.out[0].as<float>();
  forRuns(call, map, part, [&](int64_t at, ScaleMap::Run run) {
    loop(x + at, scale + run.scale, zeroAt<T>(call, run.scale), run.step, y + at, run.n);
  });
}
void runDequantizeF32(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<QuantState>();
  switch (call.in[0].type) {
  case DType::U8:
    return dequantizeAs(state.loops->dequantizeU8, call, state.map, part);
  case DType::I8:
    return dequantizeAs(state.loops->dequantizeI8, call, state.map, part);
  default:
    return dequantizeAs(state.loops->dequantizeI32, call, state.map, part);
  }
}

/// The product is taken in f32, as the reference implementation of ONNX does, and then rounded to the result.
void runDequantize(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<QuantState>();
  const TensorView &x = call.in[0], &y = call.out[0];
  forElements(y.elements(), part, kGatherBlock, [&](int64_t begin, int64_t n) {
    double block[kGatherBlock];
    loadAsF64(x.type, x.data, begin, n, block);
    RunParams params;
    for (int64_t at = 0; at < n;) {
      ScaleMap::Run run = state.map.runAt(begin + at, begin + n);
      params.read(call, run);
      for (int64_t k = 0; k < run.n; ++k)
        block[at + k] = float(block[at + k] - params.zero[k * run.step]) * float(params.scale[k * run.step]);
      at += run.n;
    }
    storeFromF64(y.type, y.data, begin, n, block);
  });
}

// --- dynamic: phase 0 finds the range of each tile, phase 1 quantises ---

struct DynamicState {
  const QuantLoops *loops;
  uint32_t tiles;
};
struct Range {
  float low, high;
};

template <Isa isa> void prepareDynamic(const KernelCall &call, KernelWork &work) {
  prepareElementwise(call, work, 3);
  work.make<DynamicState>() = {&quantLoops(isa), work.tiles[0]};
  work.phases = 2;
  work.tiles[1] = work.tiles[0];
  work.scratchShared = work.tiles[0] * sizeof(Range);
  work.bytes += double(call.in[0].elements()) * sizeof(float);
}

void findRanges(const KernelCall &call, const QuantLoops &loops, const KernelPart &part) {
  auto *ranges = reinterpret_cast<Range *>(part.shared);
  for (uint32_t tile = part.begin; tile < part.end; ++tile) {
    Range range{0, 0}; // zero is always representable
    KernelPart one = part;
    one.begin = tile;
    one.end = tile + 1;
    forElements(call.in[0].elements(), one, kElementwiseTile, [&](int64_t i, int64_t n) {
      loops.range(call.in[0].as<float>() + i, n, &range.low, &range.high);
    });
    ranges[tile] = range;
  }
}

void runDynamic(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<DynamicState>();
  if (part.phase == 0)
    return findRanges(call, *state.loops, part);
  Range all{0, 0};
  auto *ranges = reinterpret_cast<const Range *>(part.shared);
  for (uint32_t tile = 0; tile < state.tiles; ++tile)
    all = {std::min(all.low, ranges[tile].low), std::max(all.high, ranges[tile].high)};
  auto [scale, zero] = ByteScale::of(all.low, all.high);
  if (part.begin == 0) {
    *call.out[1].as<float>() = scale;
    *call.out[2].as<uint8_t>() = zero;
  }
  forElements(call.out[0].elements(), part, kElementwiseTile, [&](int64_t i, int64_t n) {
    state.loops->quantizeU8(call.in[0].as<float>() + i, &scale, &zero, 0, call.out[0].as<uint8_t>() + i, n);
  });
}

} // namespace

std::span<const Kernel> quantKernels() {
  static const Kernel rows[] = {
      {"quantize_linear", "quantize_linear_f32_avx512", Isa::Avx512, acceptsQuantizeF32, prepare<Isa::Avx512>,
       runQuantizeF32},
      {"quantize_linear", "quantize_linear_f32_avx2", Isa::Avx2, acceptsQuantizeF32, prepare<Isa::Avx2>,
       runQuantizeF32},
      {"quantize_linear", "quantize_linear_f32", Isa::Baseline, acceptsQuantizeF32, prepare<Isa::Baseline>,
       runQuantizeF32},
      {"quantize_linear", "quantize_linear_reference", Isa::Baseline, nullptr, prepare<Isa::Baseline>,
       runQuantize},
      {"dequantize_linear", "dequantize_linear_f32_avx512", Isa::Avx512, acceptsDequantizeF32,
       prepare<Isa::Avx512>, runDequantizeF32},
      {"dequantize_linear", "dequantize_linear_f32_avx2", Isa::Avx2, acceptsDequantizeF32, prepare<Isa::Avx2>,
       runDequantizeF32},
      {"dequantize_linear", "dequantize_linear_f32", Isa::Baseline, acceptsDequantizeF32,
       prepare<Isa::Baseline>, runDequantizeF32},
      {"dequantize_linear", "dequantize_linear_reference", Isa::Baseline, nullptr, prepare<Isa::Baseline>,
       runDequantize},
      {"dynamic_quantize_linear", "dynamic_quantize_linear_avx512", Isa::Avx512, nullptr,
       prepareDynamic<Isa::Avx512>, runDynamic},
      {"dynamic_quantize_linear", "dynamic_quantize_linear_avx2", Isa::Avx2, nullptr,
       prepareDynamic<Isa::Avx2>, runDynamic},
      {"dynamic_quantize_linear", "dynamic_quantize_linear", Isa::Baseline, nullptr,
       prepareDynamic<Isa::Baseline>, runDynamic},
      {"lookup", "lookup", Isa::Baseline, nullptr, prepareLookup, runLookup},
      {"qlinear_binary", "qlinear_binary_avx512", Isa::Avx512, nullptr, prepareQlinearBinary,
       runQlinearBinary<Isa::Avx512>},
      {"qlinear_binary", "qlinear_binary_avx2", Isa::Avx2, nullptr, prepareQlinearBinary,
       runQlinearBinary<Isa::Avx2>},
      {"qlinear_binary", "qlinear_binary", Isa::Baseline, nullptr, prepareQlinearBinary,
       runQlinearBinary<Isa::Baseline>},
  };
  return rows;
}

} // namespace dspark
