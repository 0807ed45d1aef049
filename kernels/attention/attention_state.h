// What the kernels of dense attention (attention.cpp, attention_reference.cpp) read from shapes and
// attributes: where rows lie, and which keys a query sees.
#pragma once
#include "kernels/attention/attention.h"
#include "kernels/common/kernel.h"
#include <algorithm>

namespace dspark {

/// Strides in elements; a mask stride is 0 where the mask broadcasts.
struct AttentionState {
  int64_t batch, qHeads, kvHeads, queries, past, fresh, total, headSize, valueSize;
  int64_t qBatch, qHead, qRow, kBatch, kHead, kRow, vBatch, vHead, vRow, yBatch, yHead, yRow;
  int64_t mask[3], maskKeys; // maskKeys is INT64_MAX without a mask; keys beyond it are hidden
  int64_t left, right;       // the window, clamped so that sums cannot overflow
  double scale, softcap;
  float unseen; // what rows that see no key give: 0, or NaN as in softmax(-inf, ..)
  ScoreOutput scoreOutput;
  bool causal;
  DType softmaxType; // Undefined: that of the scores

  explicit AttentionState(const KernelCall &call);
  AttentionState() = default;
};

/// Keys [low, high) that causality, window, padding and a short mask leave to a query.
struct KeyRange {
  int64_t low, high;
};

/// The queries of batch `b` among its keys.
class Visibility {
public:
  Visibility(const KernelCall &call, const AttentionState &s, int64_t b);
  KeyRange of(int64_t query) const;

private:
  const AttentionState &s;
  int64_t offset, visible; // the place of query 0 among the keys; valid keys
};

/// present_key and present_value of one (batch, key head): past rows, then the new ones.
void copyPresent(const KernelCall &call, const AttentionState &s, int64_t index);
inline bool hasPresent(const KernelCall &call) {
  return (call.out.size() > 1 && call.out[1].present()) || (call.out.size() > 2 && call.out[2].present());
}
inline bool wantsScores(const KernelCall &call) { return call.out.size() > 3 && call.out[3].present(); }

} // namespace dspark
