// Packed weights times rows of f32 (packed.h). Included once per ISA level.
#pragma once
#include "kernels/matmul/packed_codes.h"

namespace dspark {
namespace {

constexpr int kFloatChains = 2;

// Weights of a chunk, [terms][16]: vector i of term k, `isOdd` being k's parity; ahead() asks for what comes
// behind a term of each chain. Weights in memory are asked for step by step, far enough to bridge a page, so
// that their way from there and the arithmetic overlap.
constexpr int64_t kAheadBytes = 8192;
struct PlainWeights { // in scratch
  const float *w;
  DSPARK_SIMD void ahead(int64_t) const {}
  DSPARK_SIMD vf at(int64_t k, int64_t i, bool) const { return load(w + k * kPackedColumns + i * kLanes); }
};
template <int Bytes> DSPARK_SIMD void askFor(const uint8_t *lines, int64_t k) { // of a weight
  for (int64_t at = 0; at < kFloatChains * Bytes * kPackedColumns; at += 64)
    __builtin_prefetch(lines + k * Bytes * kPackedColumns + kAheadBytes + at, 0, kAheadLocality);
}
struct F32Weights : PlainWeights { // in memory
  DSPARK_SIMD void ahead(int64_t k) const { askFor<4>(reinterpret_cast<const uint8_t *>(w), k); }
};
struct F16Weights {
  const uint8_t *lines;
  DSPARK_SIMD void ahead(int64_t k) const { askFor<2>(lines, k); }
  DSPARK_SIMD vf at(int64_t k, int64_t i, bool) const {
    return f16At(lines + 2 * (k * kPackedColumns + i * kLanes));
  }
};
struct Bf16Weights { // [16][2]: the even term is the lower half of each word
  const uint8_t *lines;
  DSPARK_SIMD void ahead(int64_t k) const { askFor<2>(lines, k); }
  DSPARK_SIMD vf at(int64_t k, int64_t i, bool isOdd) const {
    vwords pairs = *reinterpret_cast<const vwords *>(lines + k / 2 * 4 * kPackedColumns + 4 * i * kLanes);
    return fromBits(isOdd ? pairs & int32_t(0xffff0000) : pairs << 16);
  }
};

// Weights that are floats, as a panel of the kind has them.
template <typename F> DSPARK_SIMD void withStored(CodeKind kind, const uint8_t *lines, F f) {
  if (kind == CodeKind::F16)
    f(F16Weights{lines});
  else if (kind == CodeKind::BF16)
    f(Bf16Weights{lines});
  else
    f(F32Weights{{reinterpret_cast<const float *>(lines)}});
}

// Chain j takes terms j, j + 2 ...; a row's chains are added up in order, whether they ran beside each other
// (few rows, which would wait for their own sums) or one after the other.
template <int R> constexpr int kChainsAtOnce = R * kVectors <= 4 ? kFloatChains : 1;

// Adds up chains from `first` on; the first of all makes `total`.
template <int N, int R>
DSPARK_SIMD void joinTo(vf (&total)[R][kVectors], const vf (&chain)[N][R][kVectors], int first) {
  unroll<N>([&](auto c) __attribute__((always_inline)) {
    unroll<R * kVectors>(DSPARK_LAMBDA {
      vf &sum = total[i / kVectors][i % kVectors];
      vf part = chain[c][i / kVectors][i % kVectors];
      sum = first + c == 0 ? part : sum + part;
    });
  });
}
template <int R> DSPARK_SIMD void addTo(float *sums, const vf (&total)[R][kVectors]) {
  unroll<R * kVectors>(DSPARK_LAMBDA {
    float *sum = sums + i * kLanes;
    store(sum, load(sum) + total[i / kVectors][i % kVectors]);
  });
}

// Chains from `first` on, as many as run beside each other, of R rows: joined to `total`, which the first of
// them makes. A function of its own where all registers are chains, as clang else keeps one of them in memory
// for the sake of `total`, and every step waits for it.
template <int R, typename Weights>
DSPARK_SIMD void joinChains(const Weights &w, int first, int64_t terms, const float *const *a,
                            vf (&total)[R][kVectors]) {
  constexpr int kAtOnce = kChainsAtOnce<R>;
  vf chain[kAtOnce][R][kVectors];
  unroll<kAtOnce * R * kVectors>(DSPARK_LAMBDA { (&chain[0][0][0])[i] = splat(0); });
  auto term = [&](int64_t k, auto c) __attribute__((always_inline)) {
    vf row[kVectors];
    unroll<kVectors>(DSPARK_LAMBDA { row[i] = w.at(k, i, (first + c) % 2); });
    unroll<R>([&](auto r) __attribute__((always_inline)) {
      vf x = splat(a[r][k]);
      unroll<kVectors>(DSPARK_LAMBDA { chain[c][r][i] = fma(x, row[i], chain[c][r][i]); });
    });
  };
  int64_t k = first;
  for (; k + kAtOnce <= terms; k += kFloatChains) {
    if (asksAhead(R) && first == 0)
      w.ahead(k);
    unroll<kAtOnce>(DSPARK_LAMBDA { term(k + i, i); });
  }
  unroll<kAtOnce - 1>(DSPARK_LAMBDA {
    if (k + i < terms)
      term(k + i, i);
  });
  joinTo(total, chain, first);
}
template <int R, typename Weights>
__attribute__((noinline)) void joinChain(const Weights &w, int first, int64_t terms, const float *const *a,
                                         vf (&total)[R][kVectors]) {
  joinChains<R>(w, first, terms, a, total);
}

template <int R, typename Weights>
DSPARK_SIMD void floatRows(const Weights &w, int64_t terms, const float *const *a, float *sums) {
  vf total[R][kVectors];
  for (int first = 0; first < kFloatChains; first += kChainsAtOnce<R>)
    if constexpr (kChainsAtOnce<R> == 1)
      joinChain<R>(w, first, terms, a, total);
    else
      joinChains<R>(w, first, terms, a, total);
  addTo(sums, total);
}

template <int R> void plainRows(const float *w, int64_t terms, const float *const *a, float *sums) {
  floatRows<R>(PlainWeights{w}, terms, a, sums);
}

using FloatRows = void (*)(const float *, int64_t, const float *const *, float *);
template <int... R> constexpr auto floatTable(std::integer_sequence<int, R...>) {
  struct Table {
    FloatRows rows[sizeof...(R)];
  };
  return Table{{plainRows<R + 1>...}};
}
#if defined(__AVX512F__)
constexpr int kFloatRows = 12;
#elif defined(__AVX2__)
constexpr int kFloatRows = 6;
#else
constexpr int kFloatRows = 2;
#endif
constexpr auto kFloatTable = floatTable(std::make_integer_sequence<int, kFloatRows>());

template <typename Weights> void storedStep(const Weights &w, float *out) {
  for (int k = 0; k < kStepTerms; ++k, out += kPackedColumns)
    unroll<kVectors>(DSPARK_LAMBDA { store(out + i * kLanes, w.at(k, i, k % 2)); });
}

// Few rows make weights on the way, which costs less than writing them down first; AVX-512 has the registers
// for more of them, and a chunk written down would fill its L1 cache.
#if defined(__AVX512F__)
constexpr int kDirectRows = 8;
#else
constexpr int kDirectRows = 2;
#endif
// Calls f with rows, 1 .. kDirectRows, as a constant.
template <int R = kDirectRows, typename F> DSPARK_SIMD void withRows(int64_t rows, F f) {
  if constexpr (R > 1)
    if (rows < R)
      return withRows<R - 1>(rows, f);
  f(std::integral_constant<int, R>());
}

// With AVX-512 also many: 8 rows at a time run at the multiply-adds' peak.
constexpr int64_t kMostStoredRows = kDirectRows > 2 ? kPackedRows : kDirectRows;

// Without scales a panel is its terms and nothing else.
void storedPanel(const PackedTile &tile, const uint8_t *panel, float *sums) {
  const int64_t termBytes = kCodeLines[int(tile.format.code)] * 64 / kStepTerms;
  for (int64_t done = 0; done < tile.k; done += kChunkTerms) {
    int64_t terms = tile.k - done < kChunkTerms ? tile.k - done : kChunkTerms;
    evenBlocks(0, tile.rows, kDirectRows, [&](int64_t rows, int64_t row) {
      const float *a[kDirectRows];
      for (int64_t r = 0; r < rows; ++r)
        a[r] = tile.a + (row + r) * tile.aRow + done;
      withStored(tile.format.code, panel + done * termBytes, [&](const auto &w) {
        withRows(rows, [&](auto count) { floatRows<count>(w, terms, a, sums + row * kPackedColumns); });
      });
    });
  }
}

// The second number of a group is a zero point, or an offset.
template <bool IsOffset> DSPARK_SIMD vf weightOf(vi code, vf scale, vf zero) {
  vf value = floats(code);
  return IsOffset ? value * scale + zero : (value - zero) * scale;
}

// [32][16] weights from codes in bytes, term j of quad q being byte j of each column.
template <bool IsOffset>
void codesStep(const PackedFormat &format, const uint8_t *bytes, const float *scale, const float *zero,
               float *out) {
  int quadsPerGroup = int(kQuads) / format.scalesPerStep();
  for (int q = 0; q < kQuads; ++q) {
    int64_t group = q / quadsPerGroup * kPackedColumns;
    unroll<kVectors>(DSPARK_LAMBDA {
      vi four = *reinterpret_cast<const vwords *>(bytes + q * 64 + i * 4 * kLanes);
      vf s = load(scale + group + i * kLanes), z = load(zero + group + i * kLanes);
      for (int j = 0; j < 4; ++j)
        store(out + (q * 4 + j) * kPackedColumns + i * kLanes,
              weightOf<IsOffset>((four >> (8 * j)) & 255, s, z));
    });
  }
}

// --- few rows times codes ---

/// A chunk of whole steps whose codes are bytes, rows of A from there on, and their sums.
struct FewRowsChunk {
  const Chunk &weights;
  const uint8_t *bytes; // [steps][512]
  int64_t stepBytes;    // in the panel
  int groups;           // scales per step
  const float *a[kDirectRows];
  float *sums;
};

// Making weights takes registers, too.
template <int R> constexpr int kCodeChainsAtOnce = R * kVectors <= 2 ? kFloatChains : 1;

// Chains from `first` on of R rows, joined to `total`: joinChains with weights that are made on the way, each
// of them once, as a chain has its own terms of every quad.
template <bool IsOffset, int R>
__attribute__((noinline)) void codeChains(const FewRowsChunk &chunk, int first, vf (&total)[R][kVectors]) {
  constexpr int kAtOnce = kCodeChainsAtOnce<R>;
  vf chain[kAtOnce][R][kVectors];
  unroll<kAtOnce * R * kVectors>(DSPARK_LAMBDA { (&chain[0][0][0])[i] = splat(0); });
  const uint8_t *bytes = chunk.bytes;
  for (int s = 0; s < chunk.weights.steps; ++s, bytes += 4 * kQuads * kPackedColumns) {
    if (first == 0)
      askAhead(chunk.weights.lines[s], chunk.stepBytes);
    for (int q = 0; q < kQuads; ++q)
      unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
        int64_t group = q * chunk.groups / kQuads * kPackedColumns;
        vi four = *reinterpret_cast<const vwords *>(bytes + q * 4 * kPackedColumns + v * 4 * kLanes);
        if constexpr (kAtOnce < kFloatChains)
          four >>= 8 * first;
        vf scale = load(chunk.weights.scale[s] + group + v * kLanes);
        vf zero = load(chunk.weights.zero[s] + group + v * kLanes);
        unroll<4 / kFloatChains>([&](auto j) __attribute__((always_inline)) {
          unroll<kAtOnce>([&](auto c) __attribute__((always_inline)) {
            constexpr int kTerm = j * kFloatChains + c; // beside `first`
            vf w = weightOf<IsOffset>((four >> 8 * kTerm) & 255, scale, zero);
            unroll<R>(DSPARK_LAMBDA {
              vf x = splat(chunk.a[i][s * kStepTerms + 4 * q + kTerm + first]);
              chain[c][i][v] = fma(x, w, chain[c][i][v]);
            });
          });
        });
      });
  }
  joinTo(total, chain, first);
}

template <bool IsOffset, int R> void codeRows(const FewRowsChunk &chunk) {
  vf total[R][kVectors];
  for (int first = 0; first < kFloatChains; first += kCodeChainsAtOnce<R>)
    codeChains<IsOffset, R>(chunk, first, total);
  addTo(chunk.sums, total);
}

void fewCodeRows(const PackedTile &tile, const Chunk &weights, int64_t done, uint8_t *bytes, float *sums) {
  Unpack unpack = unpacker(tile.format.code);
  for (int s = 0; s < weights.steps; ++s)
    unpack(weights.lines[s], bytes + s * 4 * kQuads * kPackedColumns);
  FewRowsChunk chunk{weights, bytes, tile.format.stepBytes(), tile.format.scalesPerStep(), {}, sums};
  for (int64_t r = 0; r < tile.rows; ++r)
    chunk.a[r] = tile.a + r * tile.aRow + done;
  withRows(tile.rows, [&](auto rows) {
    tile.format.zero == ZeroKind::Offset ? codeRows<true, rows>(chunk) : codeRows<false, rows>(chunk);
  });
}

// [terms][16] weights of a chunk.
void chunkWeights(const PackedFormat &format, const Chunk &chunk, float *out) {
  Unpack unpack = format.isFloat() ? nullptr : unpacker(format.code);
  auto *step = format.zero == ZeroKind::Offset ? codesStep<true> : codesStep<false>;
  for (int s = 0; s < chunk.steps; ++s, out += kStepTerms * kPackedColumns) {
    if (!unpack) {
      withStored(format.code, chunk.lines[s], [&](const auto &w) { storedStep(w, out); });
      continue;
    }
    alignas(64) uint8_t bytes[512];
    unpack(chunk.lines[s], bytes);
    step(format, bytes, chunk.scale[s], chunk.zero[s], out);
  }
}

void floatPanel(const PackedTile &tile, const uint8_t *panel, float *sums) {
  __builtin_memset(sums, 0, size_t(tile.rows * kPackedColumns) * sizeof(float));
  if (tile.format.isFloat() && tile.rows <= kMostStoredRows)
    return storedPanel(tile, panel, sums);
  float *weights = tile.scratch + 2 * kPackedRows * kPackedColumns;
  const bool isFew = !tile.format.isFloat() && tile.rows > 0 && tile.rows <= kDirectRows;
  ChunkReader reader(tile, panel, weights + kChunkTerms * kPackedColumns, !isFew);
  Chunk chunk;
  for (int64_t done = 0; reader.next(chunk); done += kChunkTerms) {
    int64_t terms = tile.k - done < kChunkTerms ? tile.k - done : kChunkTerms;
    if (isFew && terms == chunk.steps * kStepTerms) { // no step has codes beyond the last term
      fewCodeRows(tile, chunk, done, reinterpret_cast<uint8_t *>(weights), sums);
      continue;
    }
    chunkWeights(tile.format, chunk, weights);
    evenBlocks(0, tile.rows, kFloatRows, [&](int64_t rows, int64_t row) {
      const float *a[kFloatRows];
      for (int64_t r = 0; r < rows; ++r)
        a[r] = tile.a + (row + r) * tile.aRow + done;
      kFloatTable.rows[rows - 1](weights, terms, a, sums + row * kPackedColumns);
    });
  }
}

} // namespace
} // namespace dspark
