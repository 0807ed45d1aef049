// attention: softmax(softcap(scale Q K^T) + mask) V with grouped key heads, causal and sliding windows,
// padding and a key cache. Semantics: ONNX Attention-25 (and 23, 24, which are subsets).
//
// Tiles: (batch, head, block of query rows), then one tile per (batch, key head) that copies present_key and
// present_value. A tile computes kAttentionRows rows of scores at a time, so nothing of size S x T is ever
// stored. Keys that causality, the window or the padding hide from all rows of a group are not even read;
// masked keys get probability 0, whatever their score.
#include "kernels/attention/attention.h"
#include "kernels/attention/attention_core.h"
#include "kernels/attention/attention_kernel.h"
#include "kernels/common/element.h"
#include <algorithm>
#include <cstring>

namespace dspark {
namespace {

// Strides in elements; a mask stride is 0 where the mask broadcasts.
struct AttentionState {
  int64_t batch, qHeads, kvHeads, queries, past, fresh, total, headSize, valueSize;
  int64_t qBatch, qHead, qRow, kBatch, kHead, kRow, vBatch, vHead, vRow, yBatch, yHead, yRow;
  int64_t mask[3], maskKeys;
  int64_t rowsPerTile, blocks, attendTiles;
  int64_t left, right; // the window, clamped so that sums cannot overflow
  double scale, softcap;
  ScoreOutput scoreOutput;
  bool causal;
  DType softmaxType; // Undefined: that of the scores
};

constexpr int64_t kUnbounded = int64_t(1) << 40;

int64_t windowSize(const KernelCall &call, const char *name) {
  int64_t size = call.attrs.i(name, -1);
  return size < 0 ? kUnbounded : std::min(size, kUnbounded);
}

void readShapes(const KernelCall &call, AttentionState &s) {
  const TensorView &q = call.in[0], &k = call.in[1], &v = call.in[2];
  s.batch = q.dim(0);
  if (q.rank == 3) {
    s.qHeads = call.attrs.i("q_num_heads", 1), s.kvHeads = call.attrs.i("kv_num_heads", 1);
    s.queries = q.dim(1), s.fresh = k.dim(1);
    s.headSize = q.dim(2) / s.qHeads, s.valueSize = v.dim(2) / s.kvHeads;
    s.qHead = s.headSize, s.qRow = s.qHeads * s.headSize;
    s.kHead = s.headSize, s.kRow = s.kvHeads * s.headSize;
    s.vHead = s.valueSize, s.vRow = s.kvHeads * s.valueSize;
    s.yHead = s.valueSize, s.yRow = s.qHeads * s.valueSize;
  } else {
    s.qHeads = q.dim(1), s.kvHeads = k.dim(1);
    s.queries = q.dim(2), s.fresh = k.dim(2);
    s.headSize = q.dim(3), s.valueSize = v.dim(3);
    s.qRow = s.kRow = s.headSize, s.vRow = s.yRow = s.valueSize;
    s.qHead = s.queries * s.qRow, s.kHead = s.fresh * s.kRow;
    s.vHead = s.fresh * s.vRow, s.yHead = s.queries * s.yRow;
  }
  s.qBatch = s.queries * s.qHeads * s.headSize, s.kBatch = s.fresh * s.kvHeads * s.headSize;
  s.vBatch = s.fresh * s.kvHeads * s.valueSize, s.yBatch = s.queries * s.qHeads * s.valueSize;
  s.past = call.has(4) ? call.in[4].dim(2) : 0;
  s.total = s.past + s.fresh;
}

void readMask(const KernelCall &call, AttentionState &s) {
  if (!call.has(3))
    return;
  const TensorView &mask = call.in[3];
  s.maskKeys = mask.dim(mask.rank - 1);
  int64_t stride = s.maskKeys;
  for (int axis = 2, i = mask.rank - 2; i >= 0; --i, --axis) {
    s.mask[axis] = mask.dim(i) == 1 ? 0 : stride;
    stride *= mask.dim(i);
  }
}

bool isCore(DType type, DType core) { return type == core; }
DType coreType(const KernelCall &call) { return call.in[0].type == DType::F64 ? DType::F64 : DType::F32; }

// Scratch of one tile, in elements of the core type.
struct Layout {
  int64_t q, scores, out, keys, values, count;
};
Layout layoutOf(const KernelCall &call, const AttentionState &s) {
  DType core = coreType(call);
  Layout l;
  l.q = 0;
  l.scores = l.q + kAttentionRows * s.headSize;
  l.out = l.scores + kAttentionRows * s.total;
  l.keys = l.out + kAttentionRows * s.valueSize;
  l.values = l.keys + (isCore(call.in[1].type, core) ? 0 : s.total * s.headSize);
  l.count = l.values + (isCore(call.in[2].type, core) ? 0 : s.total * s.valueSize);
  return l;
}

// Rows [0, count) of one head as core elements: the tensors themselves, or converted copies of them in
// `scratch`.
template <typename A>
AttentionRows<A> headRows(const TensorView &past, const TensorView &fresh, int64_t pastOffset,
                          int64_t pastCount, int64_t freshOffset, int64_t freshStride, int64_t freshCount,
                          int64_t width, A *scratch) {
  constexpr DType kCore = std::is_same_v<A, double> ? DType::F64 : DType::F32;
  if (fresh.type == kCore)
    return {past.present() ? past.as<const A>() + pastOffset : nullptr, fresh.as<const A>() + freshOffset,
            pastCount, width, freshStride};
  dispatchFloat(fresh.type, [&]<typename T>() {
    for (int64_t j = 0; j < pastCount + freshCount; ++j) {
      const T *row = j < pastCount ? past.as<const T>() + pastOffset + j * width
                                   : fresh.as<const T>() + freshOffset + (j - pastCount) * freshStride;
      for (int64_t c = 0; c < width; ++c)
        scratch[j * width + c] = A(row[c]);
    }
  });
  return {scratch, scratch, pastCount + freshCount, width, width};
}

template <typename A> class AttentionTile {
public:
  AttentionTile(const KernelCall &call, const AttentionState &s, const AttentionCore<A> &core, A *scratch)
      : call(call), s(s), core(core), scratch(scratch), layout(layoutOf(call, s)) {}

  void run(int64_t tile) {
    int64_t block = tile % s.blocks;
    h = tile / s.blocks % s.qHeads, b = tile / s.blocks / s.qHeads;
    int64_t kv = h / (s.qHeads / s.kvHeads);
    keys = headRows<A>(call.input(4), call.in[1], (b * s.kvHeads + kv) * s.past * s.headSize, s.past,
                       b * s.kBatch + kv * s.kHead, s.kRow, s.fresh, s.headSize, scratch + layout.keys);
    values = headRows<A>(call.input(5), call.in[2], (b * s.kvHeads + kv) * s.past * s.valueSize, s.past,
                         b * s.vBatch + kv * s.vHead, s.vRow, s.fresh, s.valueSize, scratch + layout.values);
    // Where query row i sits among the keys: the count of valid keys before the block of queries.
    int64_t valid =
        call.has(6) ? std::clamp<int64_t>(call.in[6].as<const int64_t>()[b], 0, s.total) : s.total;
    visible = valid;
    offset = call.has(6) ? std::clamp(call.in[6].as<const int64_t>()[b], -kUnbounded, kUnbounded) - s.queries
                         : s.past;
    int64_t end = std::min(s.queries, (block + 1) * s.rowsPerTile);
    for (int64_t i = block * s.rowsPerTile; i < end; i += kAttentionRows)
      attend(i, int(std::min<int64_t>(kAttentionRows, end - i)));
  }

private:
  // Keys [low, high) that causality, window and padding leave to query i.
  int64_t low(int64_t i) const { return std::clamp<int64_t>(offset + i - s.left, 0, s.total); }
  int64_t high(int64_t i) const {
    int64_t last = std::min(offset + i + s.right, s.causal ? offset + i : kUnbounded * 2);
    return std::clamp<int64_t>(last + 1, 0, visible);
  }

  void attend(int64_t first, int rows) {
    A *q = scratch + layout.q, *scores = scratch + layout.scores, *out = scratch + layout.out;
    dispatchFloat(call.in[0].type, [&]<typename T>() {
      for (int r = 0; r < rows; ++r) {
        const T *row = call.in[0].as<const T>() + b * s.qBatch + h * s.qHead + (first + r) * s.qRow;
        for (int64_t d = 0; d < s.headSize; ++d)
          q[r * s.headSize + d] = A(row[d]) * A(s.scale);
      }
    });
    bool wantsScores = call.out.size() > 3 && call.out[3].present();
    // From a multiple of the lanes, so that a row's sums do not depend on which rows share its group.
    int64_t begin = wantsScores ? 0 : low(first) / kAttentionLanes * kAttentionLanes;
    int64_t end = wantsScores ? s.total : high(first + rows - 1);
    end = std::max(begin, end);
    core.scores(q, rows, s.headSize, keys, begin, end, scores, s.total);
    for (int r = 0; r < rows; ++r)
      weigh(first + r, scores + r * s.total, begin, end, wantsScores);
    core.values(scores, rows, s.total, values, begin, end, s.valueSize, out);
    dispatchFloat(call.out[0].type, [&]<typename T>() {
      for (int r = 0; r < rows; ++r) {
        T *row = call.out[0].as<T>() + b * s.yBatch + h * s.yHead + (first + r) * s.yRow;
        for (int64_t c = 0; c < s.valueSize; ++c)
          row[c] = T(out[r * s.valueSize + c]);
      }
    });
  }

  // Scores of one row become probabilities.
  void weigh(int64_t i, A *row, int64_t begin, int64_t end, bool wantsScores) {
    auto emit = [&](ScoreOutput stage) {
      if (!wantsScores || s.scoreOutput != stage)
        return;
      dispatchFloat(call.out[3].type, [&]<typename T>() {
        T *out = call.out[3].as<T>() + ((b * s.qHeads + h) * s.queries + i) * s.total;
        for (int64_t j = 0; j < s.total; ++j)
          out[j] = T(row[j]);
      });
    };
    emit(ScoreOutput::Raw);
    if (s.softcap > 0)
      for (int64_t j = begin; j < end; ++j)
        row[j] = A(s.softcap) * std::tanh(row[j] / A(s.softcap));
    emit(ScoreOutput::Softcapped);
    constexpr A kHidden = -std::numeric_limits<A>::infinity();
    std::fill(row + begin, row + std::clamp(low(i), begin, end), kHidden);
    std::fill(row + std::clamp(high(i), begin, end), row + end, kHidden);
    addMask(i, row, begin, end);
    emit(ScoreOutput::Biased);
    softmax(row + begin, end - begin);
    emit(ScoreOutput::Probabilities);
  }

  void addMask(int64_t i, A *row, int64_t begin, int64_t end) {
    if (!call.has(3))
      return;
    constexpr A kHidden = -std::numeric_limits<A>::infinity();
    int64_t at = b * s.mask[0] + h * s.mask[1] + i * s.mask[2], masked = std::clamp(s.maskKeys, begin, end);
    dispatchNumber(call.in[3].type, [&]<typename T>() {
      const T *mask = call.in[3].as<const T>() + at;
      bool isBool = call.in[3].type == DType::Bool;
      for (int64_t j = begin; j < masked; ++j) {
        A bias = isBool ? (mask[j] != T(0) ? A(0) : kHidden) : A(mask[j]);
        row[j] = bias == kHidden ? kHidden : row[j] + bias;
      }
    });
    std::fill(row + masked, row + end, kHidden);
  }

  void softmax(A *row, int64_t count) {
    if (s.softmaxType == DType::F64 && !std::is_same_v<A, double>)
      return softmaxF64(row, count);
    auto round = [&] {
      for (int64_t j = 0; j < count; ++j)
        row[j] = s.softmaxType == DType::F16 ? A(F16(float(row[j]))) : A(BF16(float(row[j])));
    };
    bool isRounded = s.softmaxType == DType::F16 || s.softmaxType == DType::BF16;
    if (isRounded)
      round();
    core.softmax(row, count);
    if (isRounded)
      round();
  }

  static void softmaxF64(A *row, int64_t count) {
    double top = -std::numeric_limits<double>::infinity(), total = 0;
    for (int64_t j = 0; j < count; ++j)
      top = std::max(top, double(row[j]));
    if (std::isinf(top) && top < 0)
      top = 0;
    for (int64_t j = 0; j < count; ++j)
      total += std::exp(double(row[j]) - top);
    for (int64_t j = 0; j < count; ++j)
      row[j] = total == 0 ? A(0) : A(std::exp(double(row[j]) - top) / total);
  }

  const KernelCall &call;
  const AttentionState &s;
  const AttentionCore<A> &core;
  A *scratch;
  Layout layout;
  int64_t b = 0, h = 0, visible = 0, offset = 0;
  AttentionRows<A> keys{}, values{};
};

// present[b, kv] = past rows, then the new rows.
void copyPresent(const TensorView &past, const TensorView &fresh, const TensorView &present,
                 int64_t pastCount, int64_t freshCount, int64_t index, int64_t freshOffset,
                 int64_t freshStride, int64_t width) {
  size_t size = size_t(dtypeBits(fresh.type) / 8), rowBytes = size_t(width) * size;
  char *to = present.as<char>() + size_t(index * (pastCount + freshCount)) * rowBytes;
  if (pastCount)
    std::memcpy(to, past.as<const char>() + size_t(index * pastCount) * rowBytes,
                size_t(pastCount) * rowBytes);
  for (int64_t j = 0; j < freshCount; ++j)
    std::memcpy(to + size_t(pastCount + j) * rowBytes,
                fresh.as<const char>() + size_t(freshOffset + j * freshStride) * size, rowBytes);
}

template <typename A>
void runTiles(const KernelCall &call, const KernelWork &work, const KernelPart &part,
              const AttentionCore<A> &core) {
  const auto &s = work.get<AttentionState>();
  AttentionTile<A> tile(call, s, core, reinterpret_cast<A *>(part.scratch));
  for (int64_t t = part.begin; t < part.end; ++t) {
    if (t < s.attendTiles) {
      tile.run(t);
      continue;
    }
    int64_t index = t - s.attendTiles, b = index / s.kvHeads, kv = index % s.kvHeads;
    if (call.out.size() > 1 && call.out[1].present() && s.headSize)
      copyPresent(call.input(4), call.in[1], call.out[1], s.past, s.fresh, index, b * s.kBatch + kv * s.kHead,
                  s.kRow, s.headSize);
    if (call.out.size() > 2 && call.out[2].present() && s.valueSize)
      copyPresent(call.input(5), call.in[2], call.out[2], s.past, s.fresh, index, b * s.vBatch + kv * s.vHead,
                  s.vRow, s.valueSize);
  }
}

} // namespace

void prepareAttention(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<AttentionState>();
  readShapes(call, s);
  readMask(call, s);
  s.left = windowSize(call, "left_window_size"), s.right = windowSize(call, "right_window_size");
  s.scale = call.attrs.f("scale", 1 / std::sqrt(double(std::max<int64_t>(s.headSize, 1))));
  s.softcap = call.attrs.f("softcap", 0);
  s.causal = call.attrs.i("is_causal", 0) != 0;
  s.scoreOutput = ScoreOutput(call.attrs.i("qk_matmul_output_mode", 0));
  s.softmaxType = DType(call.attrs.i("softmax_precision", 0));

  // About 200k multiply-adds per tile, in whole groups of rows.
  int64_t perRow = std::max<int64_t>(1, s.total * (s.headSize + s.valueSize));
  s.rowsPerTile = std::clamp<int64_t>(200000 / perRow, 1, 64) * kAttentionRows;
  s.blocks = (s.queries + s.rowsPerTile - 1) / s.rowsPerTile;
  s.attendTiles = s.batch * s.qHeads * s.blocks;
  bool hasPresent =
      (call.out.size() > 1 && call.out[1].present()) || (call.out.size() > 2 && call.out[2].present());
  work.tiles[0] = uint32_t(s.attendTiles + (hasPresent ? s.batch * s.kvHeads : 0));
  DType core = coreType(call);
  work.scratchPerThread = size_t(dtypeBytes(core, layoutOf(call, s).count)) + 64;
  work.flops = 2.0 * double(s.batch * s.qHeads * s.queries) * double(perRow);
  work.bytes =
      double(dtypeBytes(call.in[0].type, s.batch * (s.qBatch + s.yBatch))) +
      double(dtypeBytes(call.in[1].type, s.batch * s.kvHeads * s.total * (s.headSize + s.valueSize)));
}

void runAttention(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  if (coreType(call) == DType::F64)
    return runTiles<double>(call, work, part, kAttentionCoreF64);
  runTiles<float>(call, work, part, kAttentionCoreF32);
}
void runAttentionAvx2(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  runTiles<float>(call, work, part, kAttentionCoreF32Avx2);
}
void runAttentionAvx512(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  runTiles<float>(call, work, part, kAttentionCoreF32Avx512);
}

} // namespace dspark
