// One tile of attention in f32: a few query rows of the heads that share one key head, over a range of key
// blocks. The dense and the paged kernel differ by where rows of K and V lie (their Source); all else is
// here.
//
// Rows are stacked query by query, `group` heads of each, so that every row read from K or V serves the
// whole group.
#pragma once
#include "kernels/attention/attention_core.h"
#include "kernels/common/element.h"
#include "kernels/elementwise/float_loops.h"
#include <algorithm>

namespace dspark {

/// Of a tile's queries: 96 rows of 64, which leave room in 512 KiB, or twice as many (Zen 4: 2 to 7 % less
/// time, in bf16 3 to 11).
inline constexpr int64_t kTileFloats = 96 * 64, kWideTileFloats = 192 * 64;

inline int64_t padded(int64_t n) { return (n + kKeyPanel - 1) / kKeyPanel * kKeyPanel; }

struct AttendShape {
  int64_t size, width;   // of a query or key row, of a value row
  int64_t paddedWidth;   // of a value row in scratch
  int64_t rows;          // most rows of one tile
  int64_t keysPerStep;   // that are brought to L1 together: 8 KiB of them
  int64_t valuesPerStep; // for many rows: 64 KiB, so that sums are long (1500 rows: 2 % less time
                         // than with 16)
  int64_t directValues;  // for few rows, whose tiles go over them one after the other: 16 KiB
  float scale, softcap;

  AttendShape() = default;
  AttendShape(int64_t size, int64_t width, double scale, double softcap, int64_t tileFloats = kTileFloats)
      : size(size), width(width), paddedWidth(padded(width)), keysPerStep(step(2048, size)),
        valuesPerStep(step(16384, paddedWidth)), directValues(step(4096, paddedWidth)), scale(float(scale)),
        softcap(float(softcap)) {
    // Q, scores and values of a tile share L2 with a block of K and V, which more rows read less often; a
    // multiple of the register tiles.
    rows = std::clamp<int64_t>(tileFloats / std::max({size, paddedWidth, kKeyPanel}) / 6 * 6, 6,
                               tileFloats / 64);
  }

private:
  static int64_t step(int64_t floats, int64_t row) {
    return std::clamp<int64_t>(floats / std::max<int64_t>(row, 1) / kKeyPanel * kKeyPanel, kKeyPanel,
                               kKeyBlock);
  }
};

/// What one split leaves of one chunk in shared scratch: values, then parts.
struct ChunkResult {
  float *values;
  AttentionPart *parts;

  static size_t bytes(const AttendShape &s, int64_t rows) {
    return (size_t(rows) * (sizeof(AttentionPart) + size_t(s.paddedWidth) * sizeof(float)) + 63) &
           ~size_t(63);
  }
  ChunkResult(const AttendShape &s, int64_t rows, std::byte *shared, int64_t index) {
    values = reinterpret_cast<float *>(shared + size_t(index) * bytes(s, rows));
    parts = reinterpret_cast<AttentionPart *>(values + rows * s.paddedWidth);
  }
};

/// f32, f16 or bf16 elements become f32, with zeros up to `paddedWidth`.
class RowWidener {
public:
  explicit RowWidener(const FloatLoops &loops) : loops(loops) {}

  void operator()(DType type, const void *row, int64_t width, int64_t paddedWidth, float *to) const {
    if (type == DType::F32)
      std::copy_n(static_cast<const float *>(row), width, to);
    else if (type == DType::F16)
      loops.f16ToFloat(static_cast<const uint16_t *>(row), to, width);
    else
      loops.bf16ToFloat(static_cast<const uint16_t *>(row), to, width);
    std::fill(to + width, to + paddedWidth, 0.0f);
  }
  /// Rounds to the type of the result.
  void narrow(DType type, const float *from, int64_t width, void *row) const {
    if (type == DType::F32)
      std::copy_n(from, width, static_cast<float *>(row));
    else if (type == DType::F16)
      loops.floatToF16(from, static_cast<uint16_t *>(row), width);
    else
      loops.floatToBf16(from, static_cast<uint16_t *>(row), width);
  }

private:
  const FloatLoops &loops;
};

/// Asks for the lines of a row in order, as the hardware's prefetcher likes them: the loops behind this jump
/// from row to row.
inline void prefetchRow(const void *row, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64)
    __builtin_prefetch(static_cast<const char *>(row) + i, 0, 3);
}

/// What the elements of rows are, where the level reads them as they lie; otherwise they are widened to f32.
inline RowType rowType(const AttentionCore &core, DType stored) {
  RowType type = stored == DType::F16 ? RowType::F16 : stored == DType::BF16 ? RowType::BF16 : RowType::F32;
  return core.keyScores[int(type)] ? type : RowType::F32;
}

/// Scratch of one tile; the arrays of floats are 64-byte aligned.
struct AttendScratch {
  float *q, *scores, *part, *chunk, *total, *staged, *panels, *bias;
  const void **pointers;
  int64_t *low, *high; // keys that a row sees
  int32_t *blockLow, *blockHigh;
  AttentionPart *parts, *chunks, *totals; // of a block, a chunk, and all

  static size_t bytes(const AttendShape &s) { return AttendScratch(s, nullptr).size; }
  AttendScratch(const AttendShape &s, std::byte *at) : base(at) {
    q = take<float>(s.rows * s.size);
    scores = take<float>(s.rows * kKeyBlock);
    part = take<float>(s.rows * s.paddedWidth);
    chunk = take<float>(s.rows * s.paddedWidth);
    total = take<float>(s.rows * s.paddedWidth);
    staged = take<float>(std::max(kKeyPanel * s.size, s.valuesPerStep * s.paddedWidth));
    panels = take<float>(s.keysPerStep * s.size);
    bias = take<float>(kKeyBlock);
    pointers = take<const void *>(kKeyBlock + kRowsAhead);
    low = take<int64_t>(s.rows);
    high = take<int64_t>(s.rows);
    blockLow = take<int32_t>(s.rows);
    blockHigh = take<int32_t>(s.rows);
    parts = take<AttentionPart>(s.rows);
    chunks = take<AttentionPart>(s.rows);
    totals = take<AttentionPart>(s.rows);
  }

private:
  template <typename T> T *take(int64_t count) {
    T *at = base ? reinterpret_cast<T *>(base + size) : nullptr; // null: only the size is asked for
    size += (size_t(count) * sizeof(T) + 63) & ~size_t(63);
    return at;
  }
  std::byte *base;
  size_t size = 0;
};

/// Source has
///   k, v: rows of K and V, with point(first, count, pointers) to where they lie and prefetch(first, count)
///   keysAreRead(rows), valuesAreRead(rows): whether so many query rows read them where they lie
///   keys(first, count, rows, staged, pointers): pointers to the rows of keys, and their type; at most
///   kKeyPanel keys where they are not read as they lie, which then become f32 in `staged`
///   values(first, count, rows, staged, pointers): the same of value rows, each of paddedWidth elements
///   bias(row, first, low, high, buffer): from key `first` on, of that row's keys first + [low, high); or
///   null
template <typename Source> class AttendTile {
public:
  AttendTile(const AttendShape &s, const AttentionCore &core, const Source &source, const AttendScratch &m)
      : s(s), core(core), source(source), m(m) {}

  /// All that `rows` rows see, merged into the totals.
  void run(int64_t rows) {
    int64_t first = m.low[0] / kChunk, end = (m.high[rows - 1] + kChunk - 1) / kChunk;
    if (first >= end)
      return clearTotals(rows);
    chunk(first, rows, m.totals, m.total);
    for (int64_t i = first + 1; i < end; ++i) {
      chunk(i, rows, m.chunks, m.chunk);
      mergeChunk(m.chunks, m.chunk, rows);
    }
  }
  /// One chunk of it; a row that sees nothing of it has sum 0.
  void chunk(int64_t index, int64_t rows, AttentionPart *parts, float *values) {
    // Low and high grow with the row.
    int64_t first = std::max(index * kChunkBlocks, m.low[0] / kKeyBlock);
    int64_t end = std::min((index + 1) * kChunkBlocks, (m.high[rows - 1] + kKeyBlock - 1) / kKeyBlock);
    if (first >= end)
      return clear(parts, values, rows);
    block(first, rows, parts, values);
    for (int64_t i = first + 1; i < end; ++i) {
      block(i, rows, m.parts, m.part);
      merge(parts, values, m.parts, m.part, rows);
    }
  }
  void clearTotals(int64_t rows) { clear(m.totals, m.total, rows); }
  void mergeChunk(const AttentionPart *parts, const float *values, int64_t rows) {
    merge(m.totals, m.total, parts, values, rows);
  }

private:
  void clear(AttentionPart *parts, float *values, int64_t rows) const {
    std::fill_n(parts, rows, AttentionPart());
    std::fill_n(values, rows * s.paddedWidth, 0.0f);
  }

  void block(int64_t index, int64_t rows, AttentionPart *parts, float *values) {
    int64_t first = index * kKeyBlock, from = kKeyBlock, to = 0;
    for (int64_t r = 0; r < rows; ++r) {
      m.blockLow[r] = int32_t(std::clamp<int64_t>(m.low[r] - first, 0, kKeyBlock));
      m.blockHigh[r] = int32_t(std::clamp<int64_t>(m.high[r] - first, m.blockLow[r], kKeyBlock));
      if (m.blockLow[r] < m.blockHigh[r]) {
        from = std::min<int64_t>(from, m.blockLow[r]);
        to = std::max<int64_t>(to, m.blockHigh[r]);
      }
    }
    bool isDirect = rows <= core.directRows;
    score(first, from, to, rows);
    if (!isDirect)
      prefetchValues(first, from, to);
    clear(parts, values, rows);
    for (int64_t r = 0; r < rows; ++r)
      if (m.blockLow[r] < m.blockHigh[r])
        parts[r] = core.weigh(m.scores + r * kKeyBlock, m.blockLow[r], m.blockHigh[r], s.softcap,
                              source.bias(r, first, m.blockLow[r], m.blockHigh[r], m.bias));
    if (isDirect)
      weighDirectly(first, from, to, rows, values);
    else
      weighValues(first, from, to, rows, values);
    // A mask may hide all keys, but what it hides is multiplied by 0, which NaN survives.
    for (int64_t r = 0; r < rows; ++r)
      if (parts[r].sum == 0)
        std::fill_n(values + r * s.paddedWidth, s.paddedWidth, 0.0f);
  }

  void merge(AttentionPart *totals, float *total, const AttentionPart *parts, const float *values,
             int64_t rows) {
    for (int64_t r = 0; r < rows; ++r)
      core.merge(totals[r], total + r * s.paddedWidth, parts[r], values + r * s.paddedWidth, s.paddedWidth);
  }

  // Rows [begin, end) that see any of the block's keys [from, to).
  struct Span {
    int64_t begin, end;
  };
  Span seeing(int64_t from, int64_t to, int64_t rows) const {
    int64_t begin = 0, end = rows;
    while (begin < end && m.blockHigh[begin] <= from)
      ++begin;
    while (end > begin && m.blockLow[end - 1] >= to)
      --end;
    return {begin, end};
  }

  void score(int64_t first, int64_t from, int64_t to, int64_t rows) {
    int64_t begin = from / kKeyPanel * kKeyPanel;
    Span all = seeing(begin, to, rows);
    if (all.end - all.begin <= core.directRows)
      return scoreDirectly(first, begin, from, to, all);
    prefetchPanel(first, begin, to);
    for (int64_t j = begin; j < to; j += s.keysPerStep) {
      int64_t end = std::min(j + s.keysPerStep, to);
      Span see = seeing(j, end, rows);
      for (int64_t k = j; k < end; k += kKeyPanel) {
        int64_t count = std::min(kKeyPanel, end - k);
        prefetchPanel(first, k + kKeyPanel, to);
        source.keys(first + k, count, core.directRows + 1, m.staged, m.pointers);
        std::fill(m.pointers + count, m.pointers + kKeyPanel, m.pointers[count - 1]);
        core.pack(m.pointers, s.size, m.panels + (k - j) * s.size);
      }
      core.scores(m.q + see.begin * s.size, see.end - see.begin, s.size, m.panels, padded(end - j),
                  m.scores + see.begin * kKeyBlock + j);
    }
  }

  // The block's values, from `from` on, are read next.
  void scoreDirectly(int64_t first, int64_t begin, int64_t from, int64_t to, Span see) {
    int64_t step = source.keysAreRead(see.end - see.begin) ? kKeyBlock : kKeyPanel;
    for (int64_t j = begin; j < to; j += step) {
      int64_t count = std::min(step, to - j), whole = padded(count);
      RowType type = source.keys(first + j, count, see.end - see.begin, m.staged, m.pointers);
      std::fill(m.pointers + count, m.pointers + whole, m.pointers[count - 1]);
      if (j + step < to)
        pointAhead(source.k, first + j + step, first + to, m.pointers + whole);
      else
        pointAhead(source.v, first + from, first + to, m.pointers + whole);
      core.keyScores[int(type)](m.q + see.begin * s.size, see.end - see.begin, s.size, m.pointers, whole,
                                m.scores + see.begin * kKeyBlock + j);
    }
  }

  // The next block's keys are read next.
  void weighDirectly(int64_t first, int64_t from, int64_t to, int64_t rows, float *out) {
    int64_t step = source.valuesAreRead(rows) ? s.directValues : kKeyPanel;
    for (int64_t j = from; j < to; j += step) {
      int64_t count = std::min(step, to - j);
      RowType type = source.values(first + j, count, rows, m.staged, m.pointers);
      if (j + step < to)
        pointAhead(source.v, first + j + step, first + to, m.pointers + count);
      else
        pointAhead(source.k, first + kKeyBlock, m.high[rows - 1], m.pointers + count);
      values(type, j, j + count, rows, true, out);
    }
  }

  // Pointers to up to kRowsAhead of the rows [first, end); the last pointer stands for missing ones.
  template <typename Rows>
  void pointAhead(const Rows &of, int64_t first, int64_t end, const void **pointers) const {
    int64_t count = std::clamp<int64_t>(end - first, 0, kRowsAhead);
    of.point(first, count, pointers);
    std::fill(pointers + count, pointers + kRowsAhead, pointers[count - 1]);
  }

  // The keys of the panel at `from`, a panel before they are read.
  void prefetchPanel(int64_t first, int64_t from, int64_t to) {
    if (from < to)
      source.k.prefetch(first + from, std::min(kKeyPanel, to - from));
  }
  void prefetchValues(int64_t first, int64_t from, int64_t to) {
    if (from < to)
      source.v.prefetch(first + from, std::min(s.valuesPerStep, to - from));
  }

  void weighValues(int64_t first, int64_t from, int64_t to, int64_t rows, float *out) {
    // From an even key: two of them are a pair in bf16.
    for (int64_t j = from / 2 * 2, step = s.valuesPerStep; j < to; j += step) {
      int64_t count = std::min(step, to - j);
      prefetchValues(first, j + step, to);
      values(source.values(first + j, count, rows, m.staged, m.pointers), j, j + count, rows, false, out);
    }
  }
  void values(RowType type, int64_t from, int64_t to, int64_t rows, bool ahead, float *out) {
    Span see = seeing(from, to, rows);
    core.values[int(type)](m.scores + see.begin * kKeyBlock, m.blockLow + see.begin, m.blockHigh + see.begin,
                           see.end - see.begin, m.pointers, from, to, ahead, s.paddedWidth,
                           out + see.begin * s.paddedWidth);
  }

  const AttendShape &s;
  const AttentionCore &core;
  const Source &source;
  AttendScratch m;
};

} // namespace dspark
