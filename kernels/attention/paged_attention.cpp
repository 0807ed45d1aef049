// paged_attention: the rows of a ragged batch (prefilled chunks, decoded tokens and drafts to verify, side by
// side) attend to their sequences' tokens in a paged cache. Operands: paged_shape.cpp; layout: paged.h.
//
// Tiles are (block of rows, key head, split). A block of rows may belong to several sequences and is taken
// run by run. Where there are few tiles, every sequence's chunks of keys are dealt out to several splits, and
// a second phase merges them. How many splits there are follows from shapes alone, and changes no result.
#include "kernels/attention/attend.h"
#include "kernels/attention/attention_kernel.h"
#include "kernels/attention/paged.h"
#include "kernels/quant/quant_loops.h"
#include <cmath>

namespace dspark {
namespace {

constexpr int64_t kUnbounded = int64_t(1) << 40;
constexpr int64_t kWantedTiles = 64;

struct PagedState {
  AttendShape shape;
  int64_t tokens, qHeads, kvHeads, group, left;
  int64_t tokensPerBlock, blocks, splits, chunks; // chunks of the longest sequence that the table can name
  bool isCausal;
};

// K or V of one sequence and key head: the first `width` elements of each row.
struct PagedRows {
  const BatchLayout &layout;
  const TensorView &scales;
  int64_t sequence, head, width, heads, rowBytes;
  DType type;
  const char *rows;

  PagedRows(const BatchLayout &layout, const TensorView &cache, const TensorView &scales, int64_t sequence,
            int64_t head, int64_t width)
      : layout(layout), scales(scales), sequence(sequence), head(head), width(width), heads(cache.dim(1)),
        rowBytes(cache.dim(3) * (dtypeBits(cache.type) / 8)), type(cache.type), rows(cache.as<const char>()) {
  }

  /// Calls f(i, at, n) for places first + i, i < count, page by page: n rows of the cache from row `at` on.
  template <typename F> void runs(int64_t first, int64_t count, F f) const {
    for (int64_t i = 0; i < count;) {
      int64_t slot = (first + i) % layout.pageSize, n = std::min(layout.pageSize - slot, count - i);
      f(i, (layout.page(sequence, first + i) * heads + head) * layout.pageSize + slot, n);
      i += n;
    }
  }
  void prefetch(int64_t first, int64_t count) const {
    runs(first, count,
         [&](int64_t, int64_t at, int64_t n) { prefetchRow(rows + at * rowBytes, n * rowBytes); });
  }
  /// Pointers to places [first, first + count) where they lie.
  void point(int64_t first, int64_t count, const void **pointers) const {
    runs(first, count, [&](int64_t i, int64_t at, int64_t n) {
      const char *row = rows + at * rowBytes;
      for (int64_t j = 0; j < n; ++j, row += rowBytes)
        pointers[i + j] = row;
    });
  }
};

class PagedSource {
public:
  PagedRows k, v;

  /// `position` is the first row's.
  PagedSource(const KernelCall &call, const BatchLayout &layout, const PagedState &s,
              const AttentionCore &core, Isa isa, int64_t sequence, int64_t head, int64_t position)
      : k(layout, call.in[1], call.input(6), sequence, head, s.shape.size),
        v(layout, call.in[2], call.input(7), sequence, head, s.shape.width), s(s), core(core),
        slopes(call.input(9)), firstHead(head * s.group), position(position), widen(floatLoops(isa)),
        dequantize(quantLoops(isa).dequantizeI8) {}

  bool keysAreRead(int64_t rows) const { return areRead(k, rows, s.shape.size); }
  bool valuesAreRead(int64_t rows) const { return areRead(v, rows, s.shape.paddedWidth); }

  RowType keys(int64_t first, int64_t count, int64_t rows, float *staged, const void **pointers) const {
    return place(k, first, count, rows, s.shape.size, staged, pointers);
  }
  RowType values(int64_t first, int64_t count, int64_t rows, float *staged, const void **pointers) const {
    return place(v, first, count, rows, s.shape.paddedWidth, staged, pointers);
  }
  const float *bias(int64_t row, int64_t first, int64_t low, int64_t high, float *buffer) const {
    if (!slopes.present())
      return nullptr;
    auto slope = float(realAt(slopes, firstHead + row % s.group));
    for (int64_t j = low; j < high; ++j)
      buffer[j] = slope * float(first + j - position - row / s.group);
    return buffer;
  }

private:
  // If they fit as they are; halves only for few readers.
  bool areRead(const PagedRows &from, int64_t readers, int64_t pitch) const {
    bool isHalf = rowType(core, from.type) != RowType::F32 && readers <= core.directRows;
    return from.width == pitch && (from.type == DType::F32 || isHalf);
  }
  // Where they lie, or as f32 rows of `pitch` elements.
  RowType place(const PagedRows &from, int64_t first, int64_t count, int64_t readers, int64_t pitch,
                float *staged, const void **pointers) const {
    if (areRead(from, readers, pitch)) {
      from.point(first, count, pointers);
      return rowType(core, from.type);
    }
    from.runs(first, count, [&](int64_t i, int64_t at, int64_t n) {
      for (int64_t j = 0; j < n; ++j) {
        float *to = staged + (i + j) * pitch;
        pointers[i + j] = to;
        bring(from, at + j, pitch, to);
      }
    });
    return RowType::F32;
  }
  // Row `at` of the cache as f32.
  void bring(const PagedRows &from, int64_t at, int64_t pitch, float *to) const {
    const char *row = from.rows + at * from.rowBytes;
    if (from.type != DType::I8)
      return widen(from.type, row, from.width, pitch, to);
    float scale = from.scales.present() ? from.scales.as<const float>()[at] : 1.0f;
    dequantize(reinterpret_cast<const int8_t *>(row), &scale, nullptr, 0, to, from.width);
    std::fill(to + from.width, to + pitch, 0.0f);
  }

  const PagedState &s;
  const AttentionCore &core;
  const TensorView &slopes;
  int64_t firstHead, position;
  RowWidener widen;
  DequantizeLoop<int8_t> dequantize;
};

class PagedAttention {
public:
  PagedAttention(const KernelCall &call, const KernelWork &work, const KernelPart &part, Isa isa)
      : call(call), s(work.get<PagedState>()), part(part), isa(isa), core(attentionCore(isa)),
        widen(floatLoops(isa)), m(s.shape, part.scratch), layout(call, 3, call.in[1], s.tokens) {}

  void run() {
    for (int64_t t = part.begin; t < part.end; ++t) {
      int64_t splits = part.phase == 1 ? 1 : s.splits;
      split = t % splits, head = t / splits % s.kvHeads, block = t / splits / s.kvHeads;
      int64_t end = std::min(s.tokens, (block + 1) * s.tokensPerBlock);
      for (int64_t row = block * s.tokensPerBlock; row < end;) {
        BatchLayout::Sequence sequence = layout.owner(row);
        int64_t stop = std::min(end, sequence.end);
        runRows(sequence, row, stop - row);
        row = stop;
      }
    }
  }

private:
  // Tokens [first, first + count) of one sequence, or of none.
  void runRows(const BatchLayout::Sequence &sequence, int64_t first, int64_t count) {
    if (s.splits > 1 && part.phase == 0 && sequence.index < 0)
      return;
    int64_t rows = count * s.group;
    place(sequence, first, rows);
    PagedSource source(call, layout, s, core, isa, sequence.index, head, sequence.position(first));
    AttendTile<PagedSource> tile(s.shape, core, source, m);
    int64_t firstChunk = m.low[0] / kChunk, end = (m.high[rows - 1] + kChunk - 1) / kChunk;
    if (s.splits == 1) {
      tile.run(rows);
    } else if (part.phase == 0) {
      int64_t length = std::max<int64_t>(end - firstChunk, 0);
      for (int64_t i = firstChunk + length * split / s.splits;
           i < firstChunk + length * (split + 1) / s.splits; ++i)
        oneChunk(source, i, first, rows);
      return;
    } else {
      tile.clearTotals(rows);
      for (int64_t i = firstChunk; i < end; ++i) {
        ChunkResult result = chunkResult(i, first);
        tile.mergeChunk(result.parts, result.values, rows);
      }
    }
    write(first, rows);
  }

  void oneChunk(const PagedSource &source, int64_t index, int64_t first, int64_t rows) {
    ChunkResult result = chunkResult(index, first);
    AttendTile<PagedSource>(s.shape, core, source, m).chunk(index, rows, result.parts, result.values);
  }
  // A split batch has one block of rows; a token's rows lie behind those of the tokens before it.
  ChunkResult chunkResult(int64_t index, int64_t first) const {
    ChunkResult all(s.shape, s.tokens * s.group, part.shared, head * s.chunks + index);
    all.values += first * s.group * s.shape.paddedWidth;
    all.parts += first * s.group;
    return all;
  }

  void place(const BatchLayout::Sequence &sequence, int64_t first, int64_t rows) {
    int64_t size = dtypeBits(call.in[0].type) / 8;
    for (int64_t r = 0; r < rows; ++r) {
      int64_t token = first + r / s.group, h = head * s.group + r % s.group;
      int64_t position = sequence.position(token);
      m.low[r] = std::clamp<int64_t>(position - s.left, 0, sequence.length);
      m.high[r] = s.isCausal ? std::clamp<int64_t>(position + 1, 0, sequence.length) : sequence.length;
      float *q = m.q + r * s.shape.size;
      widen(call.in[0].type, call.in[0].as<const char>() + (token * s.qHeads + h) * s.shape.size * size,
            s.shape.size, s.shape.size, q);
      for (int64_t d = 0; d < s.shape.size; ++d)
        q[d] *= s.shape.scale;
    }
  }

  void write(int64_t first, int64_t rows) {
    int64_t size = dtypeBits(call.out[0].type) / 8;
    for (int64_t r = 0; r < rows; ++r) {
      int64_t token = first + r / s.group, h = head * s.group + r % s.group;
      float *y = m.total + r * s.shape.paddedWidth;
      float sink = call.has(8) ? float(realAt(call.in[8], h)) : -INFINITY;
      core.finish(m.totals[r], y, sink, 0, s.shape.paddedWidth, y);
      widen.narrow(call.out[0].type, y, s.shape.width,
                   call.out[0].as<char>() + (token * s.qHeads + h) * s.shape.width * size);
    }
  }

  const KernelCall &call;
  const PagedState &s;
  const KernelPart &part;
  Isa isa;
  const AttentionCore &core;
  RowWidener widen;
  AttendScratch m;
  BatchLayout layout;
  int64_t block = 0, head = 0, split = 0;
};

} // namespace

void preparePagedAttention(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<PagedState>();
  const TensorView &q = call.in[0], &cache = call.in[1];
  s.tokens = q.dim(0), s.qHeads = q.dim(1), s.kvHeads = cache.dim(1);
  double size = double(std::max<int64_t>(q.dim(2), 1));
  s.shape = AttendShape(q.dim(2), call.out[0].dim(2), call.attrs.f("scale", 1 / std::sqrt(size)),
                        call.attrs.f("softcap", 0));
  s.group = s.kvHeads ? s.qHeads / s.kvHeads : 0;
  int64_t left = call.attrs.i("left_window_size", -1);
  s.left = left < 0 ? kUnbounded : std::min(left, kUnbounded);
  s.isCausal = call.attrs.i("is_causal", 1) != 0;

  // A token's heads stay in one tile, however many they are.
  s.shape.rows =
      std::max(s.shape.rows / std::max<int64_t>(s.group, 1), int64_t(1)) * std::max<int64_t>(s.group, 1);
  s.tokensPerBlock = s.group ? s.shape.rows / s.group : std::max<int64_t>(s.tokens, 1);
  s.blocks = s.group ? (s.tokens + s.tokensPerBlock - 1) / s.tokensPerBlock : 0;
  int64_t context = call.in[5].dim(1) * cache.dim(2);
  s.chunks = (context + kChunk - 1) / kChunk;
  s.splits =
      s.blocks == 1 ? std::clamp<int64_t>(kWantedTiles / s.kvHeads, 1, std::max<int64_t>(s.chunks, 1)) : 1;
  work.tiles[0] = uint32_t(s.blocks * s.kvHeads * s.splits);
  if (s.splits > 1) {
    work.phases = 2;
    work.tiles[1] = uint32_t(s.kvHeads);
    work.scratchShared = size_t(s.kvHeads * s.chunks) * ChunkResult::bytes(s.shape, s.tokens * s.group);
  }
  work.scratchPerThread = AttendScratch::bytes(s.shape);
  // As if every sequence were as long as its row of the table.
  double perToken = double(context) * double(s.shape.size + s.shape.width);
  work.flops = 2 * double(s.tokens * s.qHeads) * perToken;
  work.bytes = double(call.in[4].dim(0) * s.kvHeads) * perToken * dtypeBits(cache.type) / 8;
}

void runPagedAttentionBaseline(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  PagedAttention(call, work, part, Isa::Baseline).run();
}
void runPagedAttentionAvx2(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  PagedAttention(call, work, part, Isa::Avx2).run();
}
void runPagedAttentionAvx512(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  PagedAttention(call, work, part, Isa::Avx512).run();
}

} // namespace dspark
