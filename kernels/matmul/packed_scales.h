// Headers of packed weights: the scales of a chunk's steps as f32. Included once per ISA level.
#pragma once
#include "kernels/matmul/even_blocks.h"
#include "kernels/matmul/packed.h"
#include "kernels/matmul/sums.h"
#if !defined(__AVX2__)
#include "kernels/common/numeric.h"
#endif

namespace dspark {
namespace {

using namespace simd;

constexpr int kVectors = int(kPackedColumns) / kLanes; // of one number per column

/// Up to kChunkSteps steps of a panel.
struct Chunk {
  int steps;
  const uint8_t *lines[kChunkSteps];
  const float *scale[kChunkSteps], *zero[kChunkSteps]; // [scales per step][16]
};

typedef uint8_t vbyte __attribute__((ext_vector_type(kLanes), aligned(1)));
typedef int8_t vsbyte __attribute__((ext_vector_type(kLanes), aligned(1)));
typedef int16_t vsword __attribute__((ext_vector_type(kLanes), aligned(1)));
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

constexpr int64_t bytesOf(ScaleKind kind) {
  return kind == ScaleKind::F32 ? 4 : kind == ScaleKind::F16 || kind == ScaleKind::BF16 ? 2 : 1;
}
constexpr bool isSuper(ScaleKind kind) { return kind >= ScaleKind::SuperI8; }

// Numbers [at, at + kLanes) of 16 that are no Super kind's.
template <ScaleKind S> DSPARK_SIMD vf plainAt(const uint8_t *p, int at) {
  if constexpr (S == ScaleKind::F32)
    return load(reinterpret_cast<const float *>(p) + at);
  else if constexpr (S == ScaleKind::F16)
    return f16At(p + 2 * at);
  else if constexpr (S == ScaleKind::BF16)
    return bf16At(p + 2 * at);
  else if constexpr (S == ScaleKind::E8M0)
    return e8m0At(p + at);
  else
    return ue4m3At(p + at);
}

/// The factors of a block of a Super kind, the first numbers of its header. AVX-512 has registers for them.
template <ScaleKind S> struct Factors {
#if defined(__AVX512F__)
  vf first, second;

  DSPARK_SIMD void read(const uint8_t *header) {
    if constexpr (isSuper(S))
      first = f16At(header);
    if constexpr (hasMinima(S))
      second = f16At(header + 2 * kPackedColumns);
  }
  DSPARK_SIMD vf ofScales(int) const { return first; }
  DSPARK_SIMD vf ofMinima(int) const { return second; }
#else
  const uint8_t *header;

  DSPARK_SIMD void read(const uint8_t *from) { header = from; }
  DSPARK_SIMD vf ofScales(int at) const { return f16At(header + 2 * at); }
  DSPARK_SIMD vf ofMinima(int at) const { return f16At(header + 2 * kPackedColumns + 2 * at); }
#endif
};

/// The scales of group g of a block, columns [at, at + kLanes). The Super kinds' factors come first, then a
/// byte per group and column.
template <ScaleKind S>
DSPARK_SIMD vf scaleAt(const Factors<S> &factors, const uint8_t *header, int64_t g, int at) {
  if constexpr (!isSuper(S))
    return plainAt<S>(header + g * bytesOf(S) * kPackedColumns, at);
  const uint8_t *bytes = header + ((hasMinima(S) ? 4 : 2) + g) * kPackedColumns + at;
  vf factor = factors.ofScales(at);
  if constexpr (S == ScaleKind::SuperI8)
    return factor * signedAt(bytes);
  else if constexpr (S == ScaleKind::SuperEighths)
    return factor * signedAt(bytes) * 0.125f;
  else if constexpr (S == ScaleKind::SuperU8)
    return factor * bytesAt(bytes);
  else
    return factor * floats(intsAt(bytes) & 15);
}

/// The group's second numbers, of a kind that stores some.
template <ScaleKind S>
DSPARK_SIMD vf zeroAt(ZeroKind kind, const Factors<S> &factors, const uint8_t *header, int64_t g,
                      int64_t groups, int at) {
  if constexpr (isSuper(S)) {
    vf factor = factors.ofMinima(at);
    const uint8_t *bytes = header + (4 + g) * kPackedColumns + at;
    if constexpr (S == ScaleKind::SuperU8)
      return -(factor * bytesAt(bytes + groups * kPackedColumns));
    else
      return -(factor * floats(intsAt(bytes) >> 4));
  } else {
    const uint8_t *zeros = header + groups * bytesOf(S) * kPackedColumns;
    return kind == ZeroKind::Byte ? bytesAt(zeros + g * kPackedColumns + at)
                                  : plainAt<S>(zeros + g * bytesOf(S) * kPackedColumns, at);
  }
}

// 16 numbers f(column) of kLanes each.
template <typename F> DSPARK_SIMD void put(float *out, F f) {
  unroll<kVectors>(DSPARK_LAMBDA { store(out + i * kLanes, f(int(i) * kLanes)); });
}

/// Scale and zero of group g of a block. With `isInt8` values become offsets.
template <ScaleKind S>
DSPARK_SIMD void groupNumbers(const PackedFormat &format, const uint8_t *header, int64_t g, int64_t groups,
                              bool isInt8, float *scale, float *zero) {
  Factors<S> factors;
  factors.read(header);
  put(scale, [&](int at) { return scaleAt<S>(factors, header, g, at); });
  if (format.zero == ZeroKind::Constant)
    return;
  put(zero, [&](int at) { return zeroAt<S>(format.zero, factors, header, g, groups, at); });
  if (isInt8 && format.zero == ZeroKind::Value)
    put(zero, [&](int at) { return -load(zero + at) * load(scale + at); });
}

// Whether and into which cache weights that so many rows share are asked for. Zen 4 reads for one row fastest
// by itself (q4_0 29 of 24 GB/s, q4_k 24 of 18); 4 and 8 rows, which have more to compute, are not held up at
// all by weights that come into L2 in time (4 rows of q4_0 318 GOP/s, 208 by way of L1; of f16 104 and 60).
#if defined(__AVX512F__)
constexpr int kAheadLocality = 2;
constexpr bool asksAhead(int rows) { return rows > 1; }
#else
constexpr int kAheadLocality = 3;
constexpr bool asksAhead(int) { return true; }
#endif

// Asks for a step two chunks ahead: between two chunks too much is computed for loads to overtake it. Nothing
// is read, so that the end of the weights need not be known.
DSPARK_SIMD void askAhead(const uint8_t *lines, int64_t stepBytes) {
  for (int64_t at = 0; at < stepBytes; at += 64)
    __builtin_prefetch(lines + 2 * kChunkSteps * stepBytes + at);
}

/// Walks a panel chunk by chunk.
class ChunkReader {
public:
  /// `numbers` holds kChunkNumbers floats. With `asksAhead` memory is asked for chunks to come.
  ChunkReader(const PackedTile &tile, const uint8_t *panel, float *numbers, bool asksAhead = true)
      : format(tile.format), isInt8(tile.isInt8), asksAhead(asksAhead), numbers(numbers),
        constant(numbers + 4 * kChunkSteps * kPackedColumns), header(panel),
        headerBytes(format.headerBytes(tile.k)), stepBytes(format.stepBytes()),
        groups(format.groupsPerBlock(tile.k)), stepsPerBlock(format.blockTerms(tile.k) / kStepTerms),
        left((tile.k + kStepTerms - 1) / kStepTerms) {
    float zero = float(format.zeroPoint);
    put(constant, [&](int) { return splat(zero); });
    put(constant + kPackedColumns, [&](int) { return splat(zero); });
  }

  bool next(Chunk &chunk) {
    chunk.steps = int(left < kChunkSteps ? left : kChunkSteps);
    left -= chunk.steps;
    if (chunk.steps > 0)
      readAny(chunk);
    return chunk.steps > 0;
  }

private:
  void readAny(Chunk &chunk) {
    switch (format.scale) {
    case ScaleKind::None:
      return read<ScaleKind::None>(chunk);
    case ScaleKind::F32:
      return read<ScaleKind::F32>(chunk);
    case ScaleKind::F16:
      return read<ScaleKind::F16>(chunk);
    case ScaleKind::BF16:
      return read<ScaleKind::BF16>(chunk);
    case ScaleKind::E8M0:
      return read<ScaleKind::E8M0>(chunk);
    case ScaleKind::Ue4m3:
      return read<ScaleKind::Ue4m3>(chunk);
    case ScaleKind::SuperI8:
      return read<ScaleKind::SuperI8>(chunk);
    case ScaleKind::SuperEighths:
      return read<ScaleKind::SuperEighths>(chunk);
    case ScaleKind::SuperU8:
      return read<ScaleKind::SuperU8>(chunk);
    case ScaleKind::SuperNibbles:
      return read<ScaleKind::SuperNibbles>(chunk);
    }
  }

  template <ScaleKind S> void read(Chunk &chunk) {
    for (int s = 0; s < chunk.steps; ++s, ++step) {
      if (step == stepsPerBlock) {
        header += headerBytes + stepsPerBlock * stepBytes;
        step = 0;
      }
      chunk.lines[s] = header + headerBytes + step * stepBytes;
      if (asksAhead)
        askAhead(chunk.lines[s], stepBytes);
      if constexpr (S != ScaleKind::None)
        readNumbers<S>(chunk, s);
    }
  }

  template <ScaleKind S> DSPARK_SIMD void readNumbers(Chunk &chunk, int s) {
    // Steps of one long group share its numbers.
    if (groups == 1 && step > 0 && s > 0) {
      chunk.scale[s] = chunk.scale[s - 1];
      chunk.zero[s] = chunk.zero[s - 1];
      return;
    }
    float *scale = numbers + s * 4 * kPackedColumns, *zero = scale + 2 * kPackedColumns;
    chunk.scale[s] = scale;
    chunk.zero[s] = format.zero == ZeroKind::Constant ? constant : zero;
    if (format.group != 16)
      return groupNumbers<S>(format, header, groups > 1 ? step : 0, groups, isInt8, scale, zero);
    for (int i = 0; i < 2; ++i)
      groupNumbers<S>(format, header, step * 2 + i, groups, isInt8, scale + i * kPackedColumns,
                      zero + i * kPackedColumns);
  }

  const PackedFormat &format;
  bool isInt8, asksAhead;
  float *numbers, *constant;
  const uint8_t *header;
  int64_t headerBytes, stepBytes, groups, stepsPerBlock, left, step = 0;
};

} // namespace
} // namespace dspark
