// attention: softmax(softcap(scale Q K^T) + mask) V with grouped key heads, causal and sliding windows,
// padding and a key cache. Semantics: ONNX Attention-25 (and 23, 24, which are subsets).
//
// Tiles are (batch, key head, block of rows), after them one per (batch, key head) for present_key and
// present_value. With few rows there are few such tiles, so the context is split: a tile is (batch, key head,
// chunk of keys), and a second phase merges the chunks in the order in which a single tile would have.
#include "kernels/attention/attend.h"
#include "kernels/attention/attention_kernel.h"
#include "kernels/attention/attention_state.h"
#include "kernels/common/bf16_speed.h"
#include <cmath>

namespace dspark {
namespace {

struct DenseState {
  AttentionState a;
  AttendShape shape;
  int64_t group, rows, rowBlocks, chunks, attendTiles;
  bool isSplit;
};

bool isStorage(DType type) { return type == DType::F32 || type == DType::F16 || type == DType::BF16; }

// The rows of K or V of one head: the first `pastCount` from the cache, the others from the new tokens.
struct DenseRows {
  DType type;
  const char *past, *fresh;
  int64_t pastCount, freshStride, width; // of elements
  int64_t elementBytes;

  void point(int64_t first, int64_t count, const void **pointers) const {
    int64_t pastEnd = std::clamp(pastCount, first, first + count), j = first;
    for (; j < pastEnd; ++j)
      *pointers++ = past + j * width * elementBytes;
    for (; j < first + count; ++j)
      *pointers++ = fresh + (j - pastCount) * freshStride * elementBytes;
  }
  void prefetch(int64_t first, int64_t count) const {
    const void *rows[kKeyBlock];
    point(first, count, rows);
    for (int64_t i = 0; i < count; ++i)
      prefetchRow(rows[i], width * elementBytes);
  }
  // Rows where they lie, or widened to rows of `pitch` floats.
  void at(int64_t first, int64_t count, bool isDirect, int64_t pitch, const RowWidener &widen, float *staged,
          const void **pointers) const {
    point(first, count, pointers);
    for (int64_t i = 0; i < count && !isDirect; ++i) {
      widen(type, pointers[i], width, pitch, staged + i * pitch);
      pointers[i] = staged + i * pitch;
    }
  }
};

class DenseSource {
public:
  DenseRows k, v;

  DenseSource(const KernelCall &call, const DenseState &s, const AttentionCore &core, const RowWidener &widen,
              int64_t b, int64_t kv, int64_t firstRow)
      : k(rowsOf(call, s.a, 4, 1, (b * s.a.kvHeads + kv) * s.a.past * s.a.headSize,
                 b * s.a.kBatch + kv * s.a.kHead, s.a.kRow, s.a.headSize)),
        v(rowsOf(call, s.a, 5, 2, (b * s.a.kvHeads + kv) * s.a.past * s.a.valueSize,
                 b * s.a.vBatch + kv * s.a.vHead, s.a.vRow, s.a.valueSize)),
        call(call), s(s), core(core), widen(widen), b(b), kv(kv), firstRow(firstRow),
        keyType(rowType(core, k.type)), valueType(rowType(core, v.type)) {}

  bool keysAreRead(int64_t rows) const {
    return k.type == DType::F32 || (keyType != RowType::F32 && rows <= core.directRows);
  }
  bool valuesAreRead(int64_t rows) const {
    return v.width == s.shape.paddedWidth &&
           (v.type == DType::F32 || (valueType != RowType::F32 && rows <= core.directRows));
  }
  RowType keys(int64_t first, int64_t count, int64_t rows, float *staged, const void **pointers) const {
    bool areRead = keysAreRead(rows);
    k.at(first, count, areRead, s.shape.size, widen, staged, pointers);
    return areRead ? keyType : RowType::F32;
  }
  RowType values(int64_t first, int64_t count, int64_t rows, float *staged, const void **pointers) const {
    // A copy in L1 pays where many queries share rows that lie far apart.
    bool isCopied = core.directRows > 0 && rows > std::max<int64_t>(core.directRows, 11) &&
                    v.freshStride != v.width && first + count > v.pastCount;
    bool areRead = valuesAreRead(rows) && !isCopied;
    v.at(first, count, areRead, s.shape.paddedWidth, widen, staged, pointers);
    return areRead ? valueType : RowType::F32;
  }
  const float *bias(int64_t r, int64_t first, int64_t low, int64_t high, float *buffer) const {
    if (!call.has(3))
      return nullptr;
    const TensorView &mask = call.in[3];
    int64_t row = firstRow + r, h = kv * s.group + row % s.group;
    int64_t at = b * s.a.mask[0] + h * s.a.mask[1] + row / s.group * s.a.mask[2] + first;
    if (mask.type == DType::F32)
      return mask.as<const float>() + at;
    dispatchNumber(mask.type, [&]<typename T>() {
      const T *from = mask.as<const T>() + at;
      bool isBool = mask.type == DType::Bool;
      for (int64_t j = low / kKeyPanel * kKeyPanel; j < high; ++j)
        buffer[j] = isBool ? (from[j] != T(0) ? 0.0f : -INFINITY) : float(from[j]);
    });
    return buffer;
  }

private:
  static DenseRows rowsOf(const KernelCall &call, const AttentionState &a, size_t past, size_t fresh,
                          int64_t pastOffset, int64_t freshOffset, int64_t freshStride, int64_t width) {
    const TensorView &old = call.input(past), &now = call.in[fresh];
    int64_t size = dtypeBits(now.type) / 8;
    return {now.type,
            a.past ? old.as<const char>() + pastOffset * size : nullptr,
            a.fresh ? now.as<const char>() + freshOffset * size : nullptr,
            a.past,
            freshStride,
            width,
            size};
  }

  const KernelCall &call;
  const DenseState &s;
  const AttentionCore &core;
  const RowWidener &widen;
  int64_t b, kv, firstRow;
  RowType keyType, valueType;
};

class DenseAttention {
public:
  DenseAttention(const KernelCall &call, const KernelWork &work, const KernelPart &part, Isa isa)
      : DenseAttention(call, work, part, isa, attentionCore(isa)) {}
  DenseAttention(const KernelCall &call, const KernelWork &work, const KernelPart &part, Isa isa,
                 const AttentionCore &core)
      : call(call), s(work.get<DenseState>()), part(part), core(core), widen(floatLoops(isa)),
        m(s.shape, part.scratch) {}

  void run() {
    for (int64_t t = part.begin; t < part.end; ++t)
      if (part.phase == 1)
        joinChunks(t);
      else if (t >= s.attendTiles)
        copyPresent(call, s.a, t - s.attendTiles);
      else if (s.isSplit)
        oneChunk(t);
      else
        allChunks(t);
  }

private:
  void allChunks(int64_t t) {
    int64_t first = t % s.rowBlocks * s.shape.rows, count = std::min(s.shape.rows, s.rows - first);
    place(t / s.rowBlocks, first, count);
    DenseSource source(call, s, core, widen, b, kv, first);
    AttendTile<DenseSource> tile(s.shape, core, source, m);
    tile.run(count);
    write(first, count);
  }

  void oneChunk(int64_t t) {
    place(t / s.chunks, 0, s.rows);
    ChunkResult result(s.shape, s.rows, part.shared, t);
    DenseSource source(call, s, core, widen, b, kv, 0);
    AttendTile<DenseSource>(s.shape, core, source, m)
        .chunk(t % s.chunks, s.rows, result.parts, result.values);
  }

  void joinChunks(int64_t head) {
    place(head, 0, s.rows);
    DenseSource source(call, s, core, widen, b, kv, 0);
    AttendTile<DenseSource> tile(s.shape, core, source, m);
    tile.clearTotals(s.rows);
    for (int64_t i = 0; i < s.chunks; ++i) {
      ChunkResult result(s.shape, s.rows, part.shared, head * s.chunks + i);
      tile.mergeChunk(result.parts, result.values, s.rows);
    }
    write(0, s.rows);
  }

  // Queries, scaled, and what they see.
  void place(int64_t head, int64_t first, int64_t count) {
    b = head / s.a.kvHeads, kv = head % s.a.kvHeads;
    Visibility visibility(call, s.a, b);
    int64_t size = dtypeBits(call.in[0].type) / 8;
    for (int64_t r = 0; r < count; ++r) {
      int64_t query = (first + r) / s.group, h = kv * s.group + (first + r) % s.group;
      KeyRange range = visibility.of(query);
      m.low[r] = range.low, m.high[r] = range.high;
      const char *from =
          call.in[0].as<const char>() + (b * s.a.qBatch + h * s.a.qHead + query * s.a.qRow) * size;
      float *q = m.q + r * s.shape.size;
      widen(call.in[0].type, from, s.shape.size, s.shape.size, q);
      for (int64_t d = 0; d < s.shape.size; ++d)
        q[d] *= s.shape.scale;
    }
    if (core.arrangeQueries)
      core.arrangeQueries(m.q, count, s.shape.size);
  }

  void write(int64_t first, int64_t count) {
    int64_t size = dtypeBits(call.out[0].type) / 8;
    for (int64_t r = 0; r < count; ++r) {
      int64_t query = (first + r) / s.group, h = kv * s.group + (first + r) % s.group;
      float *y = m.total + r * s.shape.paddedWidth;
      core.finish(m.totals[r], y, -INFINITY, s.a.unseen, s.shape.paddedWidth, y);
      widen.narrow(call.out[0].type, y, s.shape.width,
                   call.out[0].as<char>() + (b * s.a.yBatch + h * s.a.yHead + query * s.a.yRow) * size);
    }
  }

  const KernelCall &call;
  const DenseState &s;
  const KernelPart &part;
  const AttentionCore &core;
  RowWidener widen;
  AttendScratch m;
  int64_t b = 0, kv = 0;
};

// Multiply-adds of the keys that are seen, in batch 0.
double visiblePairs(const KernelCall &call, const AttentionState &a) {
  double pairs = 0;
  AttentionState plain = a;
  KernelCall shapesOnly;
  shapesOnly.in = call.in.first(std::min<size_t>(call.in.size(), 6));
  Visibility visibility(shapesOnly, plain, 0);
  for (int64_t i = 0; i < a.queries; ++i) {
    KeyRange range = visibility.of(i);
    pairs += double(std::max<int64_t>(range.high - range.low, 0));
  }
  return pairs;
}

void prepare(const KernelCall &call, KernelWork &work, int64_t tileFloats) {
  auto &s = work.make<DenseState>();
  s.a = AttentionState(call);
  s.shape = AttendShape(s.a.headSize, s.a.valueSize, s.a.scale, s.a.softcap, tileFloats);
  s.group = s.a.kvHeads ? s.a.qHeads / s.a.kvHeads : 0;
  s.rows = s.a.queries * s.group;
  s.rowBlocks = (s.rows + s.shape.rows - 1) / s.shape.rows;
  s.chunks = (s.a.total + kChunk - 1) / kChunk;
  s.isSplit = s.rows > 0 && s.rowBlocks == 1 && s.a.queries <= 16 && s.chunks > 1;
  int64_t heads = s.a.batch * s.a.kvHeads;
  s.attendTiles = heads * (s.isSplit ? s.chunks : s.rowBlocks);
  work.tiles[0] = uint32_t(s.attendTiles + (hasPresent(call) ? heads : 0));
  if (s.isSplit) {
    work.phases = 2;
    work.tiles[1] = uint32_t(heads);
    work.scratchShared = size_t(heads * s.chunks) * ChunkResult::bytes(s.shape, s.rows);
  }
  work.scratchPerThread = AttendScratch::bytes(s.shape);
  double pairs = visiblePairs(call, s.a) * double(s.a.batch * s.a.qHeads);
  work.flops = 2 * pairs * double(s.a.headSize + s.a.valueSize);
  work.bytes = double(dtypeBytes(call.in[0].type, s.a.batch * (s.a.qBatch + s.a.yBatch))) +
               double(dtypeBytes(call.in[1].type, heads * s.a.total * s.a.headSize)) +
               double(dtypeBytes(call.in[2].type, heads * s.a.total * s.a.valueSize));
}

} // namespace

bool acceptsAttention(const KernelCall &call) {
  DType softmaxType = DType(call.attrs.i("softmax_precision", 0));
  return isStorage(call.in[0].type) && isStorage(call.in[2].type) && !wantsScores(call) &&
         (softmaxType == DType::Undefined || softmaxType == DType::F32);
}

bool acceptsAttentionBf16(const KernelCall &call) {
  if (!acceptsAttention(call) || call.attrs.s("arithmetic", "") != "bf16" || !multipliesBf16())
    return false;
  constexpr int64_t kFewestRows = 16; // of queries, per key head
  AttentionState s(call);
  return s.kvHeads > 0 && s.queries * (s.qHeads / s.kvHeads) >= kFewestRows;
}

void prepareAttention(const KernelCall &call, KernelWork &work) { prepare(call, work, kTileFloats); }
void prepareAttentionWide(const KernelCall &call, KernelWork &work) { prepare(call, work, kWideTileFloats); }

void runAttentionBaseline(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  DenseAttention(call, work, part, Isa::Baseline).run();
}
void runAttentionAvx2(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  DenseAttention(call, work, part, Isa::Avx2).run();
}
void runAttentionAvx512(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  DenseAttention(call, work, part, Isa::Avx512).run();
}
void runAttentionBf16(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  DenseAttention(call, work, part, Isa::Avx512, kAttentionCoreAvx512Bf16).run();
}

} // namespace dspark
