// What becomes of scores, and how blocks are joined (most of AttentionCore's weigh, merge and finish).
#pragma once
#include "kernels/attention/attention_core.h"
#include "kernels/common/across.h"
#include "kernels/common/contract.h"
#include "kernels/common/vector_math.h"

namespace dspark {
namespace {

using namespace simd;

constexpr float kInf = __builtin_inff();

/// Softcap and bias; lanes outside [low, high) are touched too.
void adjust(float *row, int64_t low, int64_t high, float softcap, const float *bias) {
  float inverseCap = softcap > 0 ? 1 / softcap : 0;
  for (int64_t j = low / kLanes * kLanes; j < high; j += kLanes) {
    vf s = load(row + j);
    if (softcap > 0)
      s = tanh(s * inverseCap) * softcap;
    if (bias) {
      vf b = high - j < kLanes ? loadPart(bias + j, high - j) : load(bias + j);
      s = select(b == -kInf, b, s + b);
    }
    store(row + j, s);
  }
}

/// Lanes outside [low, high) become -inf, as a whole vector: one of lanes stored singly is slow to load.
DSPARK_SIMD void hideOutside(float *row, int64_t low, int64_t high) {
  vi lane;
  for (int i = 0; i < kLanes; ++i)
    lane[i] = i;
  store(row, select((lane >= int32_t(low)) & (lane < int32_t(high)), load(row), splat(-kInf)));
}

/// The largest of whole vectors; NaN is passed over.
DSPARK_SIMD float largest(const float *row, int64_t from, int64_t to) {
  vf top[4] = {splat(-kInf), splat(-kInf), splat(-kInf), splat(-kInf)};
  int64_t j = from;
  for (; j + 4 * kLanes <= to; j += 4 * kLanes)
    for (int v = 0; v < 4; ++v) {
      vf s = load(row + j + v * kLanes);
      top[v] = select(s > top[v], s, top[v]);
    }
  for (; j < to; j += kLanes)
    top[0] = select(load(row + j) > top[0], load(row + j), top[0]);
  for (int v = 1; v < 4; ++v)
    top[0] = select(top[v] > top[0], top[v], top[0]);
  return across(top[0], [](auto a, auto b) { return a > b ? a : b; });
}

/// The whole vectors [from, to) of a row that hold the scores it sees; all others in them are -inf.
struct SeenScores {
  int64_t from, to;
  float max;

  /// NaN stays NaN behind it; where all is hidden, 0 keeps -inf - max at -inf.
  float shift() const { return max == -kInf ? 0.0f : max; }
};
SeenScores seenScores(float *row, int64_t low, int64_t high, float softcap, const float *bias) {
  DSPARK_EXPECTS(low >= 0 && high <= kKeyBlock && isReadable(row, high - low));
  if (softcap > 0 || bias)
    adjust(row, low, high, softcap, bias);
  int64_t from = low / kLanes * kLanes, to = (high + kLanes - 1) / kLanes * kLanes;
  if (from < low)
    hideOutside(row + from, low - from, high - from);
  if (high < to)
    hideOutside(row + to - kLanes, low - (to - kLanes), high - (to - kLanes));
  return {from, to, largest(row, from, to)};
}

DSPARK_SIMD float expOf(float x) { return expNegative(splat(x))[0]; }

void merge(AttentionPart &total, float *totalValues, const AttentionPart &part, const float *values,
           int64_t width) {
  if (part.sum == 0)
    return;
  if (total.sum == 0) {
    total = part;
    __builtin_memcpy(totalValues, values, size_t(width) * sizeof(float));
    return;
  }
  float top = part.max > total.max ? part.max : total.max;
  float shift = top == -kInf ? 0.0f : top;
  float keep = expOf(total.max - shift), add = expOf(part.max - shift);
  total.sum = total.sum * keep + part.sum * add;
  total.max = top;
  for (int64_t c = 0; c < width; c += kLanes)
    store(totalValues + c, fma(load(totalValues + c), splat(keep), load(values + c) * add));
}

void finish(const AttentionPart &total, const float *values, float sink, float unseen, int64_t width,
            float *y) {
  float top = sink > total.max ? sink : total.max, shift = top == -kInf ? 0.0f : top;
  float keep = expOf(total.max - shift),
        sum = total.sum * keep + (sink == -kInf ? 0.0f : expOf(sink - shift));
  float scale = sum == 0 ? unseen : keep / sum;
  for (int64_t c = 0; c < width; c += kLanes)
    store(y + c, load(values + c) * scale);
}

} // namespace
} // namespace dspark
