// The loops of gemm.h, included once per ISA level and kind of terms, which the including file names first:
// terms_f32.h, or terms_bf16.h, where what is said here of a term and of a float of A and B stands for a pair
// of bf16.
//
//   for each block of K (R rows of its terms stay in the L1 cache, 12 or 24 KiB)
//     for each band of panels (its part of B stays in L2, 128 or 256 KiB)
//       for each block of R rows
//         for each group of P panels: R x 16P sums in registers, R broadcasts and P panel rows per term
//
// That the panels pass by and the rows stay is worth 3 to 8 % of the peak over the reverse (L1 holds a
// panel's 256 terms, rows pass by): sums are longer, and less of L1 is needed, half of which may be a
// neighbour's.
//
// AVX2 has 16 registers: R = 6, P = 1 keeps 12 sums, 2 panel vectors and a broadcast. AVX-512 has 32: R = 12,
// P = 2 keeps 24. With few rows there is nothing to reuse, so P grows until enough independent sums (8) cover
// the latency of the multiply-add, and K is not cut.
#pragma once
#include "kernels/common/contract.h"
#include "kernels/matmul/activate_loops.h"
#include "kernels/matmul/gemm.h"

namespace dspark {
namespace {

using namespace simd;

constexpr int kVectors = int(kPanel) / kLanes; // per panel row
#if defined(__AVX512F__)
constexpr int kRowBlock = 12;
constexpr int panelsFor(int rows) { return rows == 1 ? 8 : rows <= 3 ? 4 : 2; }
#elif defined(__AVX2__)
constexpr int kRowBlock = 6;
constexpr int panelsFor(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }
#else
constexpr int kRowBlock = 2;
constexpr int panelsFor(int) { return 1; }
#endif

#if defined(__AVX512F__)
// Zen 4, weights from memory: hardware fetches all that this needs, asking as well costs 1 to 5 %; half the
// terms in a block cost 2 to 5 %, half the band 1 %.
constexpr int64_t kBandFloats = 64 * 1024; // of B, that one band of panels has in a block of K
constexpr bool kAsksAhead = false;
// Registers hold the addresses of 12 rows, but nothing else then; reading them again for every few terms
// takes loads that the multiply-adds leave free (144 columns of 24 terms: 8 % less time, of 3 terms: 20 %).
constexpr bool kRereadsRows = true;
#else
constexpr int64_t kBandFloats = 32 * 1024;
constexpr bool kAsksAhead = true;
constexpr bool kRereadsRows = false;
#endif

// Where a block of rows and a band of panels stand in the tile, and what is fetched for later.
struct Corner {
  int64_t row, column;
  int64_t firstTap, taps, firstTerm, terms; // of this block of K
  bool isFirst, isLast;                     // block of K
  int64_t nextBlock;                        // floats of B from this block of K to what is multiplied after it
  int64_t nextBand;                         // the same from a panel of this band to its like in the next
  int64_t ahead, aheadCount; // which rows of each kAhead of the next band's panel this row block prefetches
};
constexpr int64_t kAhead = 32; // terms

// Lanes of vector v that lie within the columns left.
DSPARK_SIMD int64_t lanesOf(int64_t left, int v) {
  int64_t lanes = left - int64_t(v) * kLanes;
  return lanes < 0 ? 0 : lanes > kLanes ? kLanes : lanes;
}

// All lanes are columns of the result, but of the last vector, where HasTail, only `lanes`.
template <bool HasTail, int R, int V>
DSPARK_SIMD void finish(vf (&sum)[R][V], const GemmTile &tile, bool isLast, int64_t column, int64_t lanes,
                        float *const *c) {
  auto read = [&](const float *p, int v) __attribute__((always_inline)) {
    return HasTail && v == V - 1 ? loadLanes(p + v * kLanes, lanes) : load(p + v * kLanes);
  };
  if (isLast) {
    if (tile.scale)
      unroll<R * V>(
          DSPARK_LAMBDA { sum[i % R][i / R] = sum[i % R][i / R] * read(tile.scale + column, i / R); });
    if (tile.bias)
      unroll<R * V>(
          DSPARK_LAMBDA { sum[i % R][i / R] = sum[i % R][i / R] + read(tile.bias + column, i / R); });
    if (tile.residual)
      unroll<R * V>(DSPARK_LAMBDA {
        const float *residual = tile.residual + (c[i / V] - tile.c[0]) + column;
        sum[i / V][i % V] = sum[i / V][i % V] + read(residual, i % V);
      });
    activate(sum, tile.epilogue);
  }
  unroll<R * V>(DSPARK_LAMBDA {
    float *y = c[i / V] + column + (i % V) * kLanes;
    if (HasTail && i % V == V - 1)
      storeLanes(y, sum[i / V][i % V], lanes);
    else
      store(y, sum[i / V][i % V]);
  });
}

// The same for a tile that reaches beyond the last column, from sums in memory: one function for all sizes.
__attribute__((noinline)) void finishEdge(const float *sums, int rows, int vectors, const GemmTile &tile,
                                          bool isLast, int64_t firstRow, int64_t firstColumn) {
  for (int i = 0; i < rows * vectors; ++i) {
    int64_t row = firstRow + i / vectors, column = firstColumn + int64_t(i % vectors) * kLanes;
    int64_t lanes = lanesOf(tile.columns - column, 0);
    vf v = load(sums + i * kLanes);
    if (isLast) {
      if (tile.scale)
        v = v * loadLanes(tile.scale + column, lanes);
      if (tile.bias)
        v = v + loadLanes(tile.bias + column, lanes);
      if (tile.residual)
        v = v + loadLanes(tile.residual + (tile.c[row] - tile.c[0]) + column, lanes);
      v = activated(tile.epilogue, v);
    }
    storeLanes(tile.c[row] + column, v, lanes);
  }
}

// Half a vector: where a vector is a panel, a last panel of at most 8 columns takes vectors of 8, which are
// half the work (144 terms by 24 columns: 25 % less time, by 8: 35 %).
constexpr bool kHasHalves = kVectors == 1;
template <int... I> DSPARK_SIMD vh lowHalf(vf v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, I...);
}
template <int... I> DSPARK_SIMD vf widened(vh v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, I..., I...);
}
using HalfLanes = std::make_integer_sequence<int, kLanes / 2>;
// R rows by V vectors of columns, the last of which is half a one where IsHalf.
template <int R, int V, bool IsHalf> struct Sums {
  vf whole[R][V];
  vh half[R];

  // + T terms of x, of which row r begins at a(r), times T rows of panels.
  template <int T, typename A> DSPARK_SIMD void add(A a, const float *b, int64_t panelStride) {
    constexpr int kWhole = V - IsHalf;
    vf row[T][V];
    vh rest[T];
    unroll<T * kWhole>(DSPARK_LAMBDA {
      constexpr int term = i / kWhole, v = i % kWhole;
      row[term][v] = load(b + term * kPanel + (v / kVectors) * panelStride + (v % kVectors) * kLanes);
    });
    if (IsHalf)
      unroll<T>(DSPARK_LAMBDA { rest[i] = loadHalf(b + i * kPanel + kWhole * panelStride); });
    unroll<R>([&](auto r) __attribute__((always_inline)) {
      const float *from = a(r);
      unroll<T>([&](auto term) __attribute__((always_inline)) {
        vf x = splat(from[term]);
        unroll<kWhole>(DSPARK_LAMBDA { whole[r][i] = multiplyAdd(x, row[term][i], whole[r][i]); });
        if (IsHalf)
          addHalf(half[r], from + term, rest[term]);
      });
    });
  }
};

// All terms of one tap in this block of K. `a`: the rows, `b`: the first panel.
template <int R, int V, bool IsHalf>
DSPARK_SIMD void addTap(Sums<R, V, IsHalf> &sums, const Corner &at, const float *const *a, const float *b,
                        int64_t panelStride) {
  if constexpr (kRereadsRows) {
    constexpr int kTerms = V == 1 ? 4 : V == 2 ? 2 : 1;
    auto add = [&](auto terms, int64_t k) __attribute__((always_inline)) {
      asm volatile("" : "+r"(a)); // not kept in registers
      sums.template add<terms>([&](int r) __attribute__((always_inline)) { return a[r] + k; }, b,
                               panelStride);
      b += terms * kPanel;
    };
    int64_t k = at.firstTerm, end = at.firstTerm + at.terms;
    for (; k + kTerms <= end; k += kTerms)
      add(std::integral_constant<int, kTerms>(), k);
    for (; k < end; ++k)
      add(std::integral_constant<int, 1>(), k);
    return;
  }
  const float *rows[R];
  unroll<R>(DSPARK_LAMBDA { rows[i] = a[i] + at.firstTerm; });
  for (int64_t first = 0; first < at.terms; first += kAhead) {
    for (int64_t i = at.ahead; i < at.ahead + at.aheadCount; ++i)
      __builtin_prefetch(
          reinterpret_cast<const void *>(uintptr_t(b) + uintptr_t(at.nextBand + i * kPanel) * 4), 0, 2);
    int64_t terms = at.terms - first < kAhead ? at.terms : first + kAhead;
#pragma clang loop unroll_count(4)
    for (int64_t k = first; k < terms; ++k, b += kPanel)
      sums.template add<1>([&](int r) __attribute__((always_inline)) { return rows[r] + k; }, b, panelStride);
  }
}

// P panels; V < P * kVectors where the last vectors hold only padding. `isLastOfBand`: the next register tile
// is of the next rows.
template <int R, int P, int V, bool IsHalf>
DSPARK_SIMD void registerTile(const GemmTile &tile, const Corner &at, int64_t column, float *const *c,
                              bool isLastOfBand) {
  Sums<R, V, IsHalf> sums;
  vf(&sum)[R][V] = sums.whole;
  int64_t left = tile.columns - column;
  bool isFull = !IsHalf && left >= int64_t(V) * kLanes;
  unroll<R * V>(DSPARK_LAMBDA { sum[i / V][i % V] = splat(0); });
  if (!at.isFirst)
    unroll<R * V>(DSPARK_LAMBDA {
      const float *y = c[i / V] + column + (i % V) * kLanes;
      sum[i / V][i % V] = isFull ? load(y) : loadLanes(y, lanesOf(left, i % V));
    });
  if (IsHalf)
    unroll<R>(DSPARK_LAMBDA { sums.half[i] = lowHalf(sum[i][V - 1], HalfLanes()); });
  // The next sums. Long rows of C lie a page or more apart, where no hardware prefetcher follows.
  if (kAsksAhead && !isLastOfBand)
    unroll<R>(DSPARK_LAMBDA { __builtin_prefetch(c[i] + column + P * kPanel, 1); });
  else if (kAsksAhead && at.row + 2 * R <= tile.rows)
    unroll<R>(DSPARK_LAMBDA { __builtin_prefetch(tile.c[at.row + R + i] + at.column, 1); });
  const float *panel = tile.b + column / kPanel * tile.panelStride + at.firstTerm * kPanel;
  for (int64_t t = at.firstTap; t < at.firstTap + at.taps; ++t)
    addTap(sums, at, tile.a + t * tile.aStride + at.row,
           panel + (tile.tapOffset ? tile.tapOffset[t] : t * tile.depth * kPanel), tile.panelStride);
  if (IsHalf)
    unroll<R>(DSPARK_LAMBDA { sum[i][V - 1] = widened(sums.half[i], HalfLanes()); });
  if (isFull || IsHalf)
    return finish<IsHalf>(sum, tile, at.isLast, column, lanesOf(left, V - 1), c);
  float values[R * V * kLanes];
  unroll<R * V>(DSPARK_LAMBDA { store(values + i * kLanes, sum[i / V][i % V]); });
  finishEdge(values, R, V, tile, at.isLast, at.row, column);
}

// `count` register tiles side by side, for the same rows.
template <int R, int P, int V, bool IsHalf = false>
__attribute__((noinline)) void registerTiles(const GemmTile &tile, const Corner &at, int64_t count) {
  float *rows[R];
  if (!kRereadsRows)
    unroll<R>(DSPARK_LAMBDA { rows[i] = tile.c[at.row + i]; });
  float *const *c = kRereadsRows ? tile.c + at.row : rows;
  for (int64_t column = at.column; count > 0; --count, column += P * kPanel) {
    if (kRereadsRows)
      asm volatile("" : "+r"(c)); // not kept in registers
    registerTile<R, P, V, IsHalf>(tile, at, column, c, count == 1);
  }
}

// P is the largest group of panels, a power of two; `panels` one that is no larger.
template <int R, int P = panelsFor(R)>
void rowTile(const GemmTile &tile, const Corner &at, int panels, int64_t count) {
  if constexpr (P > 1)
    if (panels < P)
      return rowTile<R, P / 2>(tile, at, panels, count);
  if constexpr (kHasHalves && R > 3) {
    if (tile.columns - at.column <= (P - 1) * kPanel + kPanel / 2)
      return registerTiles<R, P, P, true>(tile, at, count);
  } else if constexpr (kVectors > 1 && P == 1) {
    if (tile.columns - at.column <= kPanel / 2)
      return registerTiles<R, 1, kVectors / 2>(tile, at, count);
  }
  registerTiles<R, P, P * kVectors>(tile, at, count);
}

using RowTile = void (*)(const GemmTile &, const Corner &, int panels, int64_t count);
template <int... R> struct RowTiles {
  static constexpr RowTile table[] = {rowTile<R + 1, panelsFor(R + 1)>...};
  static constexpr int panels[] = {panelsFor(R + 1)...};
};
#if defined(__AVX512F__)
using Tiles = RowTiles<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11>;
#elif defined(__AVX2__)
using Tiles = RowTiles<0, 1, 2, 3, 4, 5>;
#else
using Tiles = RowTiles<0, 1>;
#endif

int64_t panelsOf(const GemmTile &tile) { return (tile.columns + kPanel - 1) / kPanel; }

// All panels and rows of one block of K. Rows are cut into blocks of nearly equal size, so that no block is
// left with one row.
void blockOfTerms(const GemmTile &tile, Corner at) {
  int64_t blocks = (tile.rows + kRowBlock - 1) / kRowBlock;
  int largest = int((tile.rows + blocks - 1) / blocks);
  int64_t panels = panelsOf(tile);
  int group = Tiles::panels[largest - 1];
  int64_t terms = at.taps * at.terms, panelsOfBand = terms > 0 ? kBandFloats / (kPanel * terms) : panels;
  for (int64_t p = 0, count, full; p < panels; p += group * count) {
    while (group > panels - p)
      group /= 2;
    count = panelsOfBand / group;
    full = (tile.columns / kPanel - p) / group;
    count = count > full ? full : count;
    count = count < 1 ? 1 : count;
    at.column = p * kPanel;
    int64_t rest = tile.rows;
    at.row = 0;
    // The row blocks share in fetching the next band into the L2 cache: large weights come from memory (49
    // rows by 512 columns, 9 taps of 512: 4 % less time). Short sums have small weights. The last block's
    // last band fetches what follows the tile in memory, often the next tile's weights.
    bool isLastBand = p + group * count >= panels;
    at.nextBand = isLastBand ? at.nextBlock - p * tile.panelStride : group * count * tile.panelStride;
    at.aheadCount = kAsksAhead && blocks > 1 && terms >= 2 * kAhead ? (kAhead + blocks - 1) / blocks : 0;
    for (int64_t block = blocks; block > 0; --block) {
      int64_t rows = (rest + block - 1) / block;
      at.ahead = (blocks - block) * at.aheadCount % kAhead;
      Tiles::table[rows - 1](tile, at, group, count);
      at.row += rows;
      rest -= rows;
    }
  }
}

// One block of a long sum over taps: as many taps as have about kBlockTerms terms.
void blocksOfTaps(const GemmTile &tile, Corner at) {
  int64_t perBlock = tile.depth < kBlockTerms ? kBlockTerms / tile.depth : 1;
  int64_t blocks = (tile.taps + perBlock - 1) / perBlock, begin = 0;
  const int64_t end = at.nextBlock; // what follows the tile
  for (int64_t left = blocks; left > 0; --left) {
    at.firstTap = begin;
    at.taps = (tile.taps - begin + left - 1) / left;
    at.isFirst = left == blocks;
    at.isLast = left == 1;
    at.nextBlock = at.isLast ? end - begin * tile.depth * kPanel : at.taps * tile.depth * kPanel;
    blockOfTerms(tile, at);
    begin += at.taps;
  }
}

// Whether a block of A is first gathered into scratch: where enough panels read it to pay for the copy. Rows
// whose distance is a multiple of 4 KiB compete for one set of the L1 cache, and gain from it sooner (197
// rows by 96 columns, 768 terms: 6 % less time without a copy; 1024 by 512, 1024 terms: 4 % more).
bool gathersRows(const GemmTile &tile) {
  bool isConflicting = (uintptr_t(tile.a[1]) - uintptr_t(tile.a[0])) % 4096 == 0;
  return tile.copy && tile.columns > (isConflicting ? 16 : 64) * kPanel;
}

// The same for one long tap.
void blocksOfDepth(const GemmTile &tile, Corner at) {
  int64_t blocks = (tile.depth + kBlockTerms - 1) / kBlockTerms, begin = 0;
  const int64_t end = at.nextBlock; // what follows the tile
  bool gathers = gathersRows(tile);
  const float *rows[kMaxTileRows];
  GemmTile gathered = tile;
  gathered.a = rows;
  for (int64_t r = 0; gathers && r < tile.rows; ++r)
    rows[r] = tile.copy + r * kCopyStride;
  for (int64_t left = blocks; left > 0; --left) {
    int64_t terms = (tile.depth - begin + left - 1) / left;
    at.terms = terms;
    at.isFirst = left == blocks;
    at.isLast = left == 1;
    at.firstTerm = begin;
    at.nextBlock = at.isLast ? end - begin * kPanel : terms * kPanel;
    if (gathers) {
      for (int64_t r = 0; r < tile.rows; ++r)
        __builtin_memcpy(tile.copy + r * kCopyStride, tile.a[r] + begin, size_t(terms) * sizeof(float));
      // The panels still begin at the block's first term.
      gathered.b = tile.b + begin * kPanel;
      at.firstTerm = 0;
    }
    blockOfTerms(gathers ? gathered : tile, at);
    begin += terms;
  }
}

void gemmTile(const GemmTile &tile) {
  DSPARK_EXPECTS(tile.rows <= kMaxTileRows && tile.aStride >= tile.rows);
  DSPARK_EXPECTS(tile.taps >= 0 && tile.depth >= 0);
  DSPARK_EXPECTS(isReadable(tile.a, tile.rows * tile.taps) && isReadable(tile.c, tile.rows));
  DSPARK_EXPECTS(isReadable(tile.b, tile.columns * tile.taps * tile.depth));
  if (tile.rows <= 0 || tile.columns <= 0)
    return;
  // Without reuse of the panel, or when the sum is short, one block will do.
  Corner whole = {};
  whole.taps = tile.taps;
  whole.terms = tile.depth;
  whole.isFirst = whole.isLast = true;
  whole.nextBlock = panelsOf(tile) * tile.panelStride;
  if (tile.rows <= kRowBlock || tile.taps * tile.depth <= kBlockTerms + kBlockTerms / 2)
    return blockOfTerms(tile, whole);
  if (tile.taps > 1)
    return blocksOfTaps(tile, whole);
  blocksOfDepth(tile, whole);
}

} // namespace
} // namespace dspark
