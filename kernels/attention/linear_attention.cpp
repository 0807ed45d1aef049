// linear_attention: a recurrence over tokens on one state S[Dk][Dv] per (batch, key head), in f32:
//   S *= exp(g)                     gated rules, per head or per key element
//   v  = beta (v - S^T k)           delta rules
//   S += k v^T ;  o = scale S^T q   for every query head of the group
// Tiles: (batch, key head). The state lives in scratch and is written to present_state at the end. The loops
// run over Dv, the contiguous axis.
#include "kernels/attention/attention.h"
#include "kernels/attention/attention_kernel.h"
#include "kernels/common/element.h"
#include <algorithm>

namespace dspark {
namespace {

struct LinearState {
  int64_t batch, tokens, qHeads, kvHeads, keySize, valueSize;
  int64_t decayWidth, betaWidth; // last dims
  float scale;
  UpdateRule rule;
};

class Recurrence {
public:
  Recurrence(const LinearState &s, float *scratch)
      : s(s), state(scratch), value(scratch + s.keySize * s.valueSize) {}

  template <typename T> void step(const KernelCall &call, int64_t b, int64_t head, int64_t t) {
    int64_t row = b * s.tokens + t;
    const T *k = call.in[1].as<const T>() + (row * s.kvHeads + head) * s.keySize;
    const T *v = call.in[2].as<const T>() + (row * s.kvHeads + head) * s.valueSize;
    if (s.rule.gated)
      decay(call.in[4].as<const T>() + row * s.decayWidth, head);
    for (int64_t m = 0; m < s.valueSize; ++m)
      value[m] = v[m];
    if (s.rule.delta)
      correct(k, call.in[5].as<const T>()[row * s.betaWidth + (s.betaWidth == 1 ? 0 : head)]);
    for (int64_t d = 0; d < s.keySize; ++d)
      addScaled(state + d * s.valueSize, value, float(k[d]));
    int64_t group = s.qHeads / s.kvHeads;
    for (int64_t h = head * group; h < (head + 1) * group; ++h)
      read(call.in[0].as<const T>() + (row * s.qHeads + h) * s.keySize,
           call.out[0].as<T>() + (row * s.qHeads + h) * s.valueSize);
  }

private:
  template <typename T> void decay(const T *g, int64_t head) {
    bool perHead = s.decayWidth == s.kvHeads;
    for (int64_t d = 0; d < s.keySize; ++d) {
      float factor = std::exp(float(perHead ? g[head] : g[head * s.keySize + d]));
      for (int64_t m = 0; m < s.valueSize; ++m)
        state[d * s.valueSize + m] *= factor;
    }
  }
  template <typename T> void correct(const T *k, float beta) {
    float *seen = value + s.valueSize;
    std::fill(seen, seen + s.valueSize, 0.0f);
    for (int64_t d = 0; d < s.keySize; ++d)
      addScaled(seen, state + d * s.valueSize, float(k[d]));
    for (int64_t m = 0; m < s.valueSize; ++m)
      value[m] = beta * (value[m] - seen[m]);
  }
  template <typename T> void read(const T *q, T *out) {
    float *sum = value + s.valueSize;
    std::fill(sum, sum + s.valueSize, 0.0f);
    for (int64_t d = 0; d < s.keySize; ++d)
      addScaled(sum, state + d * s.valueSize, float(q[d]));
    for (int64_t m = 0; m < s.valueSize; ++m)
      out[m] = T(s.scale * sum[m]);
  }
  void addScaled(float *to, const float *from, float factor) {
    for (int64_t m = 0; m < s.valueSize; ++m)
      to[m] += factor * from[m];
  }

  const LinearState &s;
  float *state; // [Dk][Dv]
  float *value; // [Dv], then a second [Dv] for sums
};

} // namespace

void prepareLinearAttention(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<LinearState>();
  s.batch = call.in[0].dim(0), s.tokens = call.in[0].dim(1);
  s.qHeads = call.attrs.i("q_num_heads", 1), s.kvHeads = call.attrs.i("kv_num_heads", 1);
  s.keySize = call.in[0].dim(2) / s.qHeads, s.valueSize = call.in[2].dim(2) / s.kvHeads;
  s.decayWidth = call.has(4) ? call.in[4].dim(2) : 0;
  s.betaWidth = call.has(5) ? call.in[5].dim(2) : 0;
  s.rule = updateRule(call.attrs);
  double scale = call.attrs.f("scale", 0);
  s.scale = float(scale != 0 ? scale : 1 / std::sqrt(double(std::max<int64_t>(1, s.keySize))));
  work.tiles[0] = uint32_t(s.batch * s.kvHeads);
  work.scratchPerThread = size_t(s.keySize * s.valueSize + 2 * s.valueSize) * sizeof(float);
  work.flops = double(s.batch * s.tokens * (2 * s.qHeads + 5 * s.kvHeads)) * double(s.keySize * s.valueSize);
}

void runLinearAttention(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<LinearState>();
  float *state = reinterpret_cast<float *>(part.scratch);
  int64_t count = s.keySize * s.valueSize;
  for (int64_t tile = part.begin; tile < part.end; ++tile) {
    std::fill(state, state + count, 0.0f);
    if (call.has(3))
      dispatchFloat(call.in[3].type, [&]<typename T>() {
        const T *past = call.in[3].as<const T>() + tile * count;
        std::copy(past, past + count, state);
      });
    Recurrence recurrence(s, state);
    dispatchFloat(call.in[0].type, [&]<typename T>() {
      for (int64_t t = 0; t < s.tokens; ++t)
        recurrence.step<T>(call, tile / s.kvHeads, tile % s.kvHeads, t);
    });
    if (call.out.size() > 1 && call.out[1].present())
      dispatchFloat(call.out[1].type, [&]<typename T>() {
        T *present = call.out[1].as<T>() + tile * count;
        for (int64_t i = 0; i < count; ++i)
          present[i] = T(state[i]);
      });
  }
}

} // namespace dspark
