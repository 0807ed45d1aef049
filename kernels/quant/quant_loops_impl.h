// The loops of quant_loops.h for the including file's ISA level. Include once per level, after defining
// DSPARK_QUANT_LOOPS as the name of the table.
#include "kernels/common/contract.h"
#include "kernels/common/narrow_bytes.h"
#if defined(__AVX512F__)
#include "kernels/quant/whole_sums.h"
#endif
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

// Vectors that become bytes at a time: with AVX-512 four, since packing one takes as long.
#if defined(__AVX512F__)
constexpr int kBlockVectors = 4;
class BlockNarrowing {
public:
  explicit DSPARK_SIMD BlockNarrowing(const ByteRange &range) : most(splat(range.high)), narrow(range) {}
  DSPARK_SIMD __m512i operator()(const vf (&value)[kBlockVectors]) const {
    __m512 bounded[kBlockVectors]; // what int32 cannot hold; NaN stays
#pragma clang loop unroll(full)
    for (int v = 0; v < kBlockVectors; ++v)
      bounded[v] = _mm512_min_ps(__m512(most), __m512(value[v]));
    return bytesInOrder(narrow(bounded));
  }

private:
  vf most;
  QuadNarrowing narrow;
};
#else
constexpr int kBlockVectors = kByteVectors;
using BlockNarrowing = ByteNarrowing;
#endif
constexpr int64_t kByteBlock = kBlockVectors * kLanes;

/// Whether any lane of any vector is larger than `bound`.
DSPARK_SIMD bool anyAbove(const vf (&value)[kBlockVectors], float bound) {
#if defined(__AVX512F__)
  __mmask16 above = 0;
#pragma clang loop unroll(full)
  for (int v = 0; v < kBlockVectors; ++v)
    above |= _mm512_cmp_ps_mask(__m512(value[v]), _mm512_set1_ps(bound), _CMP_GT_OQ);
  return above != 0;
#else
  vi above = vi(0);
#pragma clang loop unroll(full)
  for (int v = 0; v < kBlockVectors; ++v)
    above |= value[v] > bound;
  return any(above);
#endif
}

/// value / scale in all but its last bits: quotients to be rounded to whole numbers of at most 9 bits.
/// Dividing takes several times as long as all the rest, and differs from multiplying with 1 / scale by two
/// units in the last place at most; so it is only done where that could matter, in blocks with a quotient
/// that lies that near to a tie.
struct Divider {
  vf scale, inverse;
  bool isExact; // always divides: 1 / scale is no number to multiply with

  explicit Divider(float by) : scale(splat(by)), inverse(splat(1 / by)) {
    isExact = !(by > 0x1p-100f && by < 0x1p100f);
  }
  DSPARK_SIMD void divide(vf (&value)[kBlockVectors]) const {
    vf quotient[kBlockVectors], fraction[kBlockVectors];
#pragma clang loop unroll(full)
    for (int v = 0; v < kBlockVectors; ++v) {
      quotient[v] = value[v] * inverse;
      fraction[v] = abs(quotient[v] - round(quotient[v]));
    }
    // Two units in the last place of numbers below 2^9 are 2^-14; larger ones leave the range either way.
    bool divides = isExact || anyAbove(fraction, 0.5f - 0x1p-13f);
#pragma clang loop unroll(full)
    for (int v = 0; v < kBlockVectors; ++v)
      value[v] = divides ? value[v] / scale : quotient[v];
  }
};

/// A run of one scale and zero point, a block of elements at a time.
template <typename T> void quantizeRun(const float *x, float scale, T zero, T *y, int64_t n) {
  const Divider divider(scale);
  const BlockNarrowing narrow(ByteRange::of(T(-1) < T(0), zero));
  auto block = [&](const float *from) __attribute__((always_inline)) {
    vf value[kBlockVectors];
#pragma clang loop unroll(full)
    for (int v = 0; v < kBlockVectors; ++v)
      value[v] = load(from + v * kLanes);
    divider.divide(value);
    return narrow(value);
  };
  int64_t i = 0;
  for (; i + kByteBlock <= n; i += kByteBlock) {
    auto bytes = block(x + i);
    __builtin_memcpy(y + i, &bytes, sizeof(bytes));
  }
  if (i == n)
    return;
  float rest[kByteBlock] = {};
  __builtin_memcpy(rest, x + i, size_t(n - i) * sizeof(float));
  auto bytes = block(rest);
  __builtin_memcpy(y + i, &bytes, size_t(n - i));
}

template <typename T>
void quantize(const float *x, const float *scale, const T *zero, int64_t step, T *y, int64_t n) {
  DSPARK_EXPECTS(scale && isReadable(x, n) && isReadable(y, n));
  if (step == 0)
    return quantizeRun(x, *scale, zero ? *zero : T(0), y, n);
  typedef T vt __attribute__((ext_vector_type(kLanes)));
  for (int64_t i = 0; i < n; i += kLanes) {
    int64_t lanes = n - i < kLanes ? n - i : kLanes;
    vf z = zero ? widen(zero + i, lanes) : splat(0);
    vf value = round(loadLanes(x + i, lanes) / loadLanes(scale + i, lanes)) + z;
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
  DSPARK_EXPECTS(scale && isReadable(x, n) && isReadable(y, n));
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
  DSPARK_EXPECTS(low && high && isReadable(x, n));
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

// An operand's bytes, of which a single one stands for all.
struct ByteOperand {
  uint8_t fixed[kByteBlock];
  const uint8_t *first;
  int64_t step;
  vi zero;
  vf scale;
  uint8_t flip;

  ByteOperand(const uint8_t *p, bool isScalar, uint8_t flip, float zero, float scale)
      : first(isScalar ? fixed : p), step(isScalar ? 0 : 1), zero(vi(int32_t(zero))), scale(splat(scale)),
        flip(flip) {
    __builtin_memset(fixed, *p, sizeof(fixed));
  }
  const uint8_t *at(int64_t i) const { return first + i * step; }
  /// Vector v of the block at `p`, as unsigned numbers.
  DSPARK_SIMD vf whole(const uint8_t *p, int v) const {
    return __builtin_convertvector(unsignedAt(p, v), vf);
  }
  /// Vector v of the block at `p`, dequantised.
  DSPARK_SIMD vf real(const uint8_t *p, int v) const {
    return __builtin_convertvector(unsignedAt(p, v) - zero, vf) * scale;
  }

private:
  DSPARK_SIMD vi unsignedAt(const uint8_t *p, int v) const {
    typedef uint8_t vu8 __attribute__((ext_vector_type(kLanes)));
    vu8 raw;
    __builtin_memcpy(&raw, p + v * kLanes, sizeof(raw));
    return __builtin_convertvector(raw ^ vu8(flip), vi);
  }
};

template <QuantBinary kind> void binaryOf(const QuantBinaryRun &run) {
  const ByteOperand left(run.a, run.aIsScalar, run.aFlip, run.aZero, run.aScale),
      right(run.b, run.bIsScalar, run.bFlip, run.bZero, run.bScale);
  const Divider divider(run.yScale);
  const BlockNarrowing narrow(run.range);
  auto block = [&](const uint8_t *a, const uint8_t *b, uint8_t *y) __attribute__((always_inline)) {
    vf value[kBlockVectors];
#pragma clang loop unroll(full)
    for (int v = 0; v < kBlockVectors; ++v) {
      vf x = left.real(a, v), z = right.real(b, v);
      value[v] = kind == QuantBinary::Add ? x + z : kind == QuantBinary::Sub ? x - z : x * z;
    }
    divider.divide(value);
    auto bytes = narrow(value);
    __builtin_memcpy(y, &bytes, sizeof(bytes));
  };
  int64_t i = 0, n = run.n;
#if defined(__AVX512F__)
  const WholeSums sums(run.aScale, run.aZero, kind == QuantBinary::Sub ? -run.bScale : run.bScale, run.bZero,
                       run.yScale, run.range);
  for (; kind != QuantBinary::Mul && sums.suits && i + kByteBlock <= n; i += kByteBlock) {
    const uint8_t *a = left.at(i), *b = right.at(i);
    vf x[kBlockVectors], z[kBlockVectors];
#pragma clang loop unroll(full)
    for (int v = 0; v < kBlockVectors; ++v) {
      x[v] = left.whole(a, v);
      z[v] = right.whole(b, v);
    }
    if (__m512i bytes; sums.take(x, z, bytes))
      __builtin_memcpy(run.y + i, &bytes, sizeof(bytes));
    else
      block(a, b, run.y + i);
  }
#endif
  for (; i + kByteBlock <= n; i += kByteBlock)
    block(left.at(i), right.at(i), run.y + i);
  if (i == n)
    return;
  uint8_t a[kByteBlock] = {}, b[kByteBlock] = {}, y[kByteBlock];
  __builtin_memcpy(a, left.at(i), size_t(n - i));
  __builtin_memcpy(b, right.at(i), size_t(n - i));
  block(a, b, y);
  __builtin_memcpy(run.y + i, y, size_t(n - i));
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
