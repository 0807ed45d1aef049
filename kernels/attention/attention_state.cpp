#include "kernels/attention/attention_state.h"
#include <cmath>
#include <cstring>

namespace dspark {
namespace {

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
  s.maskKeys = INT64_MAX;
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

void copyRows(const TensorView &past, const TensorView &fresh, const TensorView &present, int64_t pastCount,
              int64_t freshCount, int64_t index, int64_t freshOffset, int64_t freshStride, int64_t width) {
  size_t size = size_t(dtypeBits(fresh.type) / 8), rowBytes = size_t(width) * size;
  char *to = present.as<char>() + size_t(index * (pastCount + freshCount)) * rowBytes;
  if (pastCount)
    std::memcpy(to, past.as<const char>() + size_t(index * pastCount) * rowBytes,
                size_t(pastCount) * rowBytes);
  for (int64_t j = 0; j < freshCount; ++j)
    std::memcpy(to + size_t(pastCount + j) * rowBytes,
                fresh.as<const char>() + size_t(freshOffset + j * freshStride) * size, rowBytes);
}

} // namespace

AttentionState::AttentionState(const KernelCall &call) : AttentionState() {
  readShapes(call, *this);
  readMask(call, *this);
  left = windowSize(call, "left_window_size"), right = windowSize(call, "right_window_size");
  scale = call.attrs.f("scale", 1 / std::sqrt(double(std::max<int64_t>(headSize, 1))));
  softcap = call.attrs.f("softcap", 0);
  // A softmax over no keys at all has no NaN.
  unseen = call.attrs.s("hidden_rows", "zero") == "nan" && total > 0 ? NAN : 0.0f;
  causal = call.attrs.i("is_causal", 0) != 0;
  scoreOutput = ScoreOutput(call.attrs.i("qk_matmul_output_mode", 0));
  softmaxType = DType(call.attrs.i("softmax_precision", 0));
}

// With a count of valid keys, the queries are the last of those.
Visibility::Visibility(const KernelCall &call, const AttentionState &s, int64_t b)
    : s(s), offset(s.past), visible(s.total) {
  if (!call.has(6))
    return;
  int64_t valid = call.in[6].as<const int64_t>()[b];
  visible = std::clamp<int64_t>(valid, 0, s.total);
  offset = std::clamp(valid, -kUnbounded, kUnbounded) - s.queries;
}

KeyRange Visibility::of(int64_t query) const {
  int64_t place = offset + query, last = std::min(place + s.right, s.causal ? place : kUnbounded * 2);
  return {std::clamp<int64_t>(place - s.left, 0, s.total),
          std::min(std::clamp<int64_t>(last + 1, 0, visible), s.maskKeys)};
}

void copyPresent(const KernelCall &call, const AttentionState &s, int64_t index) {
  int64_t b = index / s.kvHeads, kv = index % s.kvHeads;
  if (call.out.size() > 1 && call.out[1].present() && s.headSize)
    copyRows(call.input(4), call.in[1], call.out[1], s.past, s.fresh, index, b * s.kBatch + kv * s.kHead,
             s.kRow, s.headSize);
  if (call.out.size() > 2 && call.out[2].present() && s.valueSize)
    copyRows(call.input(5), call.in[2], call.out[2], s.past, s.fresh, index, b * s.vBatch + kv * s.vHead,
             s.vRow, s.valueSize);
}

} // namespace dspark
