// The loops of quant_loops.h for the including file's ISA level. Include once per level, after defining
// DSPARK_QUANT_LOOPS as the name of the table.
#include "kernels/common/vector_math.h"
#include "kernels/quant/quant_loops.h"

namespace dspark {
namespace {

using namespace simd;

/// The block's T elements as floats; `lanes` of them exist.
template <typename T> DSPARK_SIMD vf widen(const T *p, int64_t lanes) {
  typedef T vt __attribute__((ext_vector_type(kLanes)));
  vt raw = vt(T(0));
  if (lanes == kLanes)
    __builtin_memcpy(&raw, p, sizeof(T) * kLanes);
  else
    __builtin_memcpy(&raw, p, sizeof(T) * size_t(lanes));
  return __builtin_convertvector(raw, vf);
}
DSPARK_SIMD vf loadLanes(const float *p, int64_t lanes) {
  return lanes == kLanes ? load(p) : loadPart(p, lanes);
}

template <typename T> constexpr float kLow = T(-1) < T(0) ? -128.0f : 0.0f;
template <typename T> constexpr float kHigh = T(-1) < T(0) ? 127.0f : 255.0f;

template <typename T>
void quantize(const float *x, const float *scale, const T *zero, int64_t step, T *y, int64_t n) {
  typedef T vt __attribute__((ext_vector_type(kLanes)));
  vf fixedScale = splat(*scale), fixedZero = splat(zero ? float(*zero) : 0.0f);
  for (int64_t i = 0; i < n; i += kLanes) {
    int64_t lanes = n - i < kLanes ? n - i : kLanes;
    vf s = step ? loadLanes(scale + i, lanes) : fixedScale;
    vf z = step && zero ? widen(zero + i, lanes) : fixedZero;
    vf value = round(loadLanes(x + i, lanes) / s) + z;
    // The first comparison also sends NaN to the lower end.
    value = select(value >= kLow<T>, value, splat(kLow<T>));
    value = select(value > kHigh<T>, splat(kHigh<T>), value);
    vt narrow = __builtin_convertvector(__builtin_convertvector(value, vi), vt);
    if (lanes == kLanes)
      __builtin_memcpy(y + i, &narrow, sizeof(narrow));
    else
      __builtin_memcpy(y + i, &narrow, size_t(lanes));
  }
}

/// Differences are taken in T's range in f32 for bytes (exact), in i64 for i32.
template <typename T>
void dequantize(const T *x, const float *scale, const T *zero, int64_t step, float *y, int64_t n) {
  vf fixedScale = splat(*scale), fixedZero = splat(zero ? float(*zero) : 0.0f);
  for (int64_t i = 0; i < n; i += kLanes) {
    int64_t lanes = n - i < kLanes ? n - i : kLanes;
    vf s = step ? loadLanes(scale + i, lanes) : fixedScale;
    vf z = step && zero ? widen(zero + i, lanes) : fixedZero;
    vf value = (widen(x + i, lanes) - z) * s;
    if (lanes == kLanes)
      store(y + i, value);
    else
      storePart(y + i, value, lanes);
  }
}
void dequantizeI32(const int32_t *x, const float *scale, const int32_t *zero, int64_t step, float *y,
                   int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = float(int64_t(x[i]) - (zero ? zero[i * step] : 0)) * scale[i * step];
}

void range(const float *x, int64_t n, float *low, float *high) {
  vf lows = splat(*low), highs = splat(*high);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    vf v = load(x + i);
    lows = select(v < lows, v, lows);
    highs = select(v > highs, v, highs);
  }
  for (; i < n; ++i) {
    lows[0] = x[i] < lows[0] ? x[i] : lows[0];
    highs[0] = x[i] > highs[0] ? x[i] : highs[0];
  }
  for (int k = 0; k < kLanes; ++k) {
    *low = lows[k] < *low ? lows[k] : *low;
    *high = highs[k] > *high ? highs[k] : *high;
  }
}

typedef uint8_t vu8 __attribute__((ext_vector_type(kLanes)));
DSPARK_SIMD vu8 loadBytes(const uint8_t *p, int64_t lanes) {
  vu8 raw = vu8(uint8_t(0));
  __builtin_memcpy(&raw, p, lanes == kLanes ? size_t(kLanes) : size_t(lanes));
  return raw;
}

template <QuantBinary kind> void binaryOf(const QuantBinaryRun &run) {
  auto real = [](vu8 x, uint8_t flip, float zero, float scale) __attribute__((always_inline)) {
    return (__builtin_convertvector(x ^ vu8(flip), vf) - zero) * scale;
  };
  vf aFixed = real(vu8(*run.a), run.aFlip, run.aZero, run.aScale),
     bFixed = real(vu8(*run.b), run.bFlip, run.bZero, run.bScale);
  for (int64_t i = 0; i < run.n; i += kLanes) {
    int64_t lanes = run.n - i < kLanes ? run.n - i : kLanes;
    vf a = run.aIsScalar ? aFixed : real(loadBytes(run.a + i, lanes), run.aFlip, run.aZero, run.aScale);
    vf b = run.bIsScalar ? bFixed : real(loadBytes(run.b + i, lanes), run.bFlip, run.bZero, run.bScale);
    vf value = kind == QuantBinary::Add ? a + b : kind == QuantBinary::Sub ? a - b : a * b;
    value = round(value / run.yScale) + run.yZero;
    value = select(value >= 0.0f, value, splat(0));
    value = select(value > 255.0f, splat(255), value);
    vu8 bytes = __builtin_convertvector(__builtin_convertvector(value, vi), vu8) ^ vu8(run.yFlip);
    __builtin_memcpy(run.y + i, &bytes, lanes == kLanes ? size_t(kLanes) : size_t(lanes));
  }
}
void binary(const QuantBinaryRun &run) {
  if (run.n <= 0)
    return;
  switch (run.kind) {
  case QuantBinary::Add:
    return binaryOf<QuantBinary::Add>(run);
  case QuantBinary::Sub:
    return binaryOf<QuantBinary::Sub>(run);
  case QuantBinary::Mul:
    return binaryOf<QuantBinary::Mul>(run);
  }
}

} // namespace

extern const QuantLoops DSPARK_QUANT_LOOPS = {
    quantize<uint8_t>,
    quantize<int8_t>,
    dequantize<uint8_t>,
    dequantize<int8_t>,
    dequantizeI32,
    range,
    binary,
};

} // namespace dspark
