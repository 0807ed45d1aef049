// attention for every floating-point type, one query row at a time and with all its scores in memory: the
// oracle of attention.cpp, and the kernel where that one stops (f64, qk_matmul_output, other precisions of
// the softmax). Sums run over d, then over keys, in order. Masked keys get probability 0, whatever their
// score.
//
// Tiles: (batch, head, query), then one per (batch, key head) for present_key and present_value.
#include "kernels/attention/attention_kernel.h"
#include "kernels/attention/attention_state.h"
#include "kernels/common/element.h"
#include <cmath>

namespace dspark {
namespace {

template <typename A> class AttentionRow {
public:
  AttentionRow(const KernelCall &call, const AttentionState &s, A *scratch)
      : call(call), s(s), scores(scratch), out(scratch + s.total) {}

  void run(int64_t tile) {
    i = tile % s.queries, h = tile / s.queries % s.qHeads, b = tile / s.queries / s.qHeads;
    kv = h / (s.qHeads / s.kvHeads);
    range = Visibility(call, s, b).of(i);
    bool wanted = wantsScores(call);
    int64_t begin = wanted ? 0 : std::min(range.low, range.high), end = wanted ? s.total : range.high;
    dispatchFloat(call.in[0].type, [&]<typename T>() { score<T>(begin, end); });
    weigh(begin, end);
    dispatchFloat(call.in[2].type, [&]<typename T>() { addValues<T>(begin, end); });
    dispatchFloat(call.out[0].type, [&]<typename T>() {
      T *row = call.out[0].as<T>() + b * s.yBatch + h * s.yHead + i * s.yRow;
      for (int64_t c = 0; c < s.valueSize; ++c)
        row[c] = T(out[c]);
    });
  }

private:
  static constexpr A kHidden = -std::numeric_limits<A>::infinity();

  template <typename T> void score(int64_t begin, int64_t end) {
    const T *q = call.in[0].as<const T>() + b * s.qBatch + h * s.qHead + i * s.qRow;
    for (int64_t j = begin; j < end; ++j) {
      const T *key = rowAt<T>(4, 1, j, s.headSize, b * s.kBatch + kv * s.kHead, s.kRow);
      A sum = 0;
      for (int64_t d = 0; d < s.headSize; ++d)
        sum += A(q[d]) * A(s.scale) * A(key[d]);
      scores[j] = sum;
    }
  }

  template <typename T> void addValues(int64_t begin, int64_t end) {
    std::fill_n(out, s.valueSize, A(isUnseen ? s.unseen : 0));
    for (int64_t j = std::max(begin, range.low); j < std::min(end, range.high); ++j) {
      const T *value = rowAt<T>(5, 2, j, s.valueSize, b * s.vBatch + kv * s.vHead, s.vRow);
      for (int64_t c = 0; c < s.valueSize; ++c)
        out[c] += scores[j] * A(value[c]);
    }
  }

  template <typename T>
  const T *rowAt(size_t past, size_t fresh, int64_t j, int64_t width, int64_t freshOffset, int64_t stride) {
    if (j < s.past)
      return call.in[past].as<const T>() + ((b * s.kvHeads + kv) * s.past + j) * width;
    return call.in[fresh].as<const T>() + freshOffset + (j - s.past) * stride;
  }

  // Scores become probabilities.
  void weigh(int64_t begin, int64_t end) {
    emit(ScoreOutput::Raw);
    if (s.softcap > 0)
      for (int64_t j = begin; j < end; ++j)
        scores[j] = A(s.softcap) * std::tanh(scores[j] / A(s.softcap));
    emit(ScoreOutput::Softcapped);
    for (int64_t j = begin; j < end; ++j)
      if (j < range.low || j >= range.high)
        scores[j] = kHidden;
    addMask(std::max(begin, range.low), std::min(end, range.high));
    emit(ScoreOutput::Biased);
    softmax(begin, end);
    emit(ScoreOutput::Probabilities);
  }

  void emit(ScoreOutput stage) {
    if (!wantsScores(call) || s.scoreOutput != stage)
      return;
    dispatchFloat(call.out[3].type, [&]<typename T>() {
      T *row = call.out[3].as<T>() + ((b * s.qHeads + h) * s.queries + i) * s.total;
      for (int64_t j = 0; j < s.total; ++j)
        row[j] = T(scores[j]);
    });
  }

  void addMask(int64_t begin, int64_t end) {
    if (!call.has(3))
      return;
    dispatchNumber(call.in[3].type, [&]<typename T>() {
      const T *mask = call.in[3].as<const T>() + b * s.mask[0] + h * s.mask[1] + i * s.mask[2];
      bool isBool = call.in[3].type == DType::Bool;
      for (int64_t j = begin; j < end; ++j) {
        A bias = isBool ? (mask[j] != T(0) ? A(0) : kHidden) : A(mask[j]);
        scores[j] = bias == kHidden ? kHidden : scores[j] + bias;
      }
    });
  }

  // In double, rounded to the type that was asked for before and after.
  void softmax(int64_t begin, int64_t end) {
    double top = -INFINITY, total = 0;
    for (int64_t j = begin; j < end; ++j) {
      scores[j] = rounded(scores[j]);
      top = std::max(top, double(scores[j]));
    }
    if (std::isinf(top) && top < 0)
      top = 0;
    for (int64_t j = begin; j < end; ++j)
      total += std::exp(double(scores[j]) - top);
    isUnseen = total == 0;
    for (int64_t j = begin; j < end; ++j)
      scores[j] = isUnseen ? A(s.unseen) : rounded(A(std::exp(double(scores[j]) - top) / total));
  }
  A rounded(A v) const {
    return s.softmaxType == DType::F16    ? A(F16(float(v)))
           : s.softmaxType == DType::BF16 ? A(BF16(float(v)))
                                          : v;
  }

  const KernelCall &call;
  const AttentionState &s;
  A *scores, *out;
  int64_t b = 0, h = 0, i = 0, kv = 0;
  KeyRange range{};
  bool isUnseen = false; // no key has a weight
};

struct ReferenceState {
  AttentionState a;
  int64_t rows;
};

template <typename A> void runRows(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<ReferenceState>();
  AttentionRow<A> row(call, s.a, reinterpret_cast<A *>(part.scratch));
  for (int64_t t = part.begin; t < part.end; ++t)
    if (t < s.rows)
      row.run(t);
    else
      copyPresent(call, s.a, t - s.rows);
}

} // namespace

void prepareAttentionReference(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<ReferenceState>();
  s.a = AttentionState(call);
  s.rows = s.a.batch * s.a.qHeads * s.a.queries;
  work.tiles[0] = uint32_t(s.rows + (hasPresent(call) ? s.a.batch * s.a.kvHeads : 0));
  work.scratchPerThread = size_t(s.a.total + s.a.valueSize) * sizeof(double);
  work.flops = 2.0 * double(s.rows) * double(s.a.total) * double(s.a.headSize + s.a.valueSize);
}

void runAttentionReference(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  if (call.in[0].type == DType::F64)
    return runRows<double>(call, work, part);
  runRows<float>(call, work, part);
}

} // namespace dspark
