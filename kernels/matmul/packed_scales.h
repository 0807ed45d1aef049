// Headers of packed weights: the scales of a chunk's steps as f32. Included once per ISA level.
#pragma once
#include "kernels/matmul/packed.h"
#include "kernels/matmul/sums.h"
#if !defined(__AVX2__)
#include "kernels/common/numeric.h"
#endif

namespace dspark {
namespace {

using namespace simd;

constexpr int kVectors = int(kPackedColumns) / kLanes; // of one number per column

// AVX2 multiplies codes of 8 bits as signed ones.
#if defined(__AVX512F__) || !defined(__AVX2__)
constexpr int codeBias(CodeKind) { return 0; }
#else
constexpr int codeBias(CodeKind kind) { return kind == CodeKind::U8 || kind == CodeKind::Nl4 ? 128 : 0; }
#endif

/// Up to 8 steps of a panel.
struct Chunk {
  int steps;
  const uint8_t *lines[kChunkSteps];
  const float *scale[kChunkSteps], *zero[kChunkSteps]; // [scales per step][16]
};

typedef uint8_t vbyte __attribute__((ext_vector_type(kLanes), aligned(1)));
typedef int8_t vsbyte __attribute__((ext_vector_type(kLanes), aligned(1)));
typedef uint16_t vword __attribute__((ext_vector_type(kLanes), aligned(1)));
typedef int32_t vwords __attribute__((ext_vector_type(kLanes), aligned(1)));

DSPARK_SIMD vi intsAt(const uint8_t *p) {
  return __builtin_convertvector(*reinterpret_cast<const vbyte *>(p), vi);
}
DSPARK_SIMD vf floats(vi v) { return __builtin_convertvector(v, vf); }
DSPARK_SIMD vf bytesAt(const uint8_t *p) { return floats(intsAt(p)); }
DSPARK_SIMD vf signedAt(const uint8_t *p) {
  return floats(__builtin_convertvector(*reinterpret_cast<const vsbyte *>(p), vi));
}
DSPARK_SIMD vf bf16At(const uint8_t *p) {
  return fromBits(__builtin_convertvector(*reinterpret_cast<const vword *>(p), vi) << 16);
}
DSPARK_SIMD vf f16At(const uint8_t *p) {
#if defined(__AVX512F__)
  return vf(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(p))));
#elif defined(__AVX2__)
  return vf(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(p))));
#else
  vf v;
  for (int i = 0; i < kLanes; ++i)
    v[i] = f16ToF32(uint16_t(p[2 * i] | p[2 * i + 1] << 8));
  return v;
#endif
}
// 2^(e-128); the two smallest are subnormal.
DSPARK_SIMD vf e8m0At(const uint8_t *p) {
  vi e = intsAt(p);
  vi low = e & 1;
  return fromBits(e < 2 ? 0x00200000 << low : (e - 1) << 23);
}
// Half of an f8 with 4 bits of exponent and 3 of mantissa; 0x7f is no number and counts as 0, and the sign
// bit is ignored, both as ggml has it.
DSPARK_SIMD vf ue4m3At(const uint8_t *p) {
  vi code = intsAt(p), exponent = code >> 3 & 15, mantissa = code & 7;
  vf normal = fromBits((exponent + 119) << 23 | mantissa << 20), small = floats(mantissa) * 0x1p-10f;
  return select(code == 0x7f, splat(0), select(exponent == 0, small, normal));
}

// 16 numbers f(byte offset of vector i, i).
template <typename F> DSPARK_SIMD void put(float *out, F f) {
  unroll<kVectors>(DSPARK_LAMBDA { store(out + i * kLanes, f(int(i) * kLanes)); });
}

DSPARK_SIMD void plainNumbers(ScaleKind kind, const uint8_t *p, float *out) {
  switch (kind) {
  case ScaleKind::F32:
    return put(out, [&](int at) { return load(reinterpret_cast<const float *>(p) + at); });
  case ScaleKind::F16:
    return put(out, [&](int at) { return f16At(p + 2 * at); });
  case ScaleKind::BF16:
    return put(out, [&](int at) { return bf16At(p + 2 * at); });
  case ScaleKind::E8M0:
    return put(out, [&](int at) { return e8m0At(p + at); });
  default:
    return put(out, [&](int at) { return ue4m3At(p + at); });
  }
}

// Group g of a block whose factors come first, then a byte per group and column.
DSPARK_SIMD void superNumbers(const PackedFormat &format, const uint8_t *header, int64_t g, int64_t groups,
                              float *scale, float *zero) {
  const uint8_t *mins = header + 2 * kPackedColumns; // factors of the minima, where there are some
  if (format.scale == ScaleKind::SuperI8) {
    const uint8_t *bytes = header + (2 + g) * kPackedColumns;
    return put(scale, [&](int at) { return f16At(header + 2 * at) * signedAt(bytes + at); });
  }
  const uint8_t *bytes = header + (4 + g) * kPackedColumns;
  if (format.scale == ScaleKind::SuperU8) {
    put(scale, [&](int at) { return f16At(header + 2 * at) * bytesAt(bytes + at); });
    bytes += groups * kPackedColumns;
    return put(zero, [&](int at) { return -(f16At(mins + 2 * at) * bytesAt(bytes + at)); });
  }
  put(scale, [&](int at) { return f16At(header + 2 * at) * floats(intsAt(bytes + at) & 15); });
  put(zero, [&](int at) { return -(f16At(mins + 2 * at) * floats(intsAt(bytes + at) >> 4)); });
}

/// Scale and zero of group g. With `isInt8` values become offsets, and biased codes are allowed for.
__attribute__((noinline)) void groupNumbers(const PackedFormat &format, const uint8_t *header, int64_t g,
                                            int64_t groups, bool isInt8, float *scale, float *zero) {
  float bias = isInt8 ? float(codeBias(format.code)) : 0;
  if (format.isSuper()) {
    superNumbers(format, header, g, groups, scale, zero);
  } else {
    int64_t bytes = scaleBytes(format.scale) * kPackedColumns;
    plainNumbers(format.scale, header + g * bytes, scale);
    const uint8_t *zeros = header + groups * bytes;
    if (format.zero == ZeroKind::Byte)
      put(zero, [&](int at) { return bytesAt(zeros + g * kPackedColumns + at) - bias; });
    else if (format.zero != ZeroKind::Constant)
      plainNumbers(format.scale, zeros + g * bytes, zero);
  }
  if (format.zero == ZeroKind::Constant)
    return put(zero, [&](int) { return splat(float(format.zeroPoint) - bias); });
  if (isInt8 && format.zero == ZeroKind::Value)
    put(zero, [&](int at) { return (bias - load(zero + at)) * load(scale + at); });
  else if (bias != 0 && format.zero == ZeroKind::Offset)
    put(zero, [&](int at) { return fma(splat(bias), load(scale + at), load(zero + at)); });
}

/// Walks a panel chunk by chunk.
class ChunkReader {
public:
  /// `numbers` holds 4 * kChunkSteps * 16 floats.
  ChunkReader(const PackedTile &tile, const uint8_t *panel, float *numbers)
      : format(tile.format), isInt8(tile.isInt8), numbers(numbers), header(panel),
        headerBytes(format.headerBytes(tile.k)), stepBytes(format.stepBytes()),
        groups(format.groupsPerBlock(tile.k)), stepsPerBlock(format.blockTerms(tile.k) / kStepTerms),
        left((tile.k + kStepTerms - 1) / kStepTerms) {}

  bool next(Chunk &chunk) {
    chunk.steps = int(left < kChunkSteps ? left : kChunkSteps);
    left -= chunk.steps;
    for (int s = 0; s < chunk.steps; ++s, ++step) {
      if (step == stepsPerBlock) {
        header += headerBytes + stepsPerBlock * stepBytes;
        step = 0;
      }
      chunk.lines[s] = header + headerBytes + step * stepBytes;
      if (format.isFloat())
        continue;
      readNumbers(chunk, s);
    }
    return chunk.steps > 0;
  }

private:
  void readNumbers(Chunk &chunk, int s) {
    int perStep = format.scalesPerStep();
    int64_t first = groups > 1 ? step * perStep : 0;
    // Steps of one long group share its numbers.
    if (groups == 1 && step > 0 && s > 0) {
      chunk.scale[s] = chunk.scale[s - 1];
      chunk.zero[s] = chunk.zero[s - 1];
      return;
    }
    float *scale = numbers + s * 4 * kPackedColumns, *zero = scale + 2 * kPackedColumns;
    for (int i = 0; i < perStep; ++i)
      groupNumbers(format, header, first + i, groups, isInt8, scale + i * kPackedColumns,
                   zero + i * kPackedColumns);
    chunk.scale[s] = scale;
    chunk.zero[s] = zero;
  }

  const PackedFormat &format;
  bool isInt8;
  float *numbers;
  const uint8_t *header;
  int64_t headerBytes, stepBytes, groups, stepsPerBlock, left, step = 0;
};

} // namespace
} // namespace dspark
