// rotary_embedding: rotates pairs of a head's elements by the angle of the token's position. A pair is (i, i
// + R/2), or (2i, 2i + 1) when interleaved; elements beyond R pass through. Tiles: blocks of (batch, token).
// 16-bit rows pass through f32 buffers of the thread's scratch.
#include "kernels/attention/attention_kernel.h"
#include "kernels/common/element.h"
#include "kernels/elementwise/half.h"
#include <algorithm>

namespace dspark {
namespace {

struct RotaryState {
  int64_t batch, heads, tokens, headSize, rotated, positions;
  int64_t batchStride, headStride, tokenStride;
  int64_t tokensPerTile;
  bool interleaved, hasIds;
};

template <typename T> void rotateHead(const RotaryState &s, const T *x, const T *cos, const T *sin, T *y) {
  int64_t half = s.rotated / 2, step = s.interleaved ? 2 : 1, distance = s.interleaved ? 1 : half;
  for (int64_t i = 0; i < half; ++i) {
    float a = x[i * step], b = x[i * step + distance], c = cos[i], d = sin[i];
    y[i * step] = T(c * a - d * b);
    y[i * step + distance] = T(d * a + c * b);
  }
  std::copy(x + s.rotated, x + s.headSize, y + s.rotated);
}

} // namespace

void prepareRotaryEmbedding(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<RotaryState>();
  const TensorView &x = call.in[0];
  s.batch = x.dim(0);
  if (x.rank == 3) {
    s.heads = call.attrs.i("num_heads", 1);
    s.tokens = x.dim(1), s.headSize = x.dim(2) / s.heads;
    s.headStride = s.headSize, s.tokenStride = x.dim(2);
  } else {
    s.heads = x.dim(1), s.tokens = x.dim(2), s.headSize = x.dim(3);
    s.headStride = s.tokens * s.headSize, s.tokenStride = s.headSize;
  }
  s.batchStride = s.heads * s.tokens * s.headSize;
  int64_t rotated = call.attrs.i("rotary_embedding_dim", 0);
  s.rotated = rotated ? rotated : s.headSize;
  s.interleaved = call.attrs.i("interleaved", 0) != 0;
  s.hasIds = call.has(3);
  s.positions = s.hasIds ? call.in[1].dim(0) : s.batch * s.tokens;
  s.tokensPerTile = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, s.heads * s.headSize));
  work.scratchPerThread = size_t(s.rotated + 2 * s.headSize) * sizeof(float);
  work.tiles[0] = uint32_t((s.batch * s.tokens + s.tokensPerTile - 1) / s.tokensPerTile);
  work.bytes = 2.0 * double(dtypeBytes(x.type, s.batch * s.batchStride));
}

namespace {

// Calls f(position, at) for the part's tokens: the row of the angles, and where head 0 of the token is.
template <typename F>
void forTokens(const KernelCall &call, const RotaryState &s, const KernelPart &part, F f) {
  int64_t end = std::min(s.batch * s.tokens, int64_t(part.end) * s.tokensPerTile);
  for (int64_t t = part.begin * s.tokensPerTile; t < end; ++t) {
    int64_t position = s.hasIds ? call.in[3].as<const int64_t>()[t] : t;
    // A position outside the cache is the model's mistake; the nearest one keeps us inside the buffer.
    position = std::clamp<int64_t>(position, 0, std::max<int64_t>(s.positions - 1, 0));
    f(position, t / s.tokens * s.batchStride + t % s.tokens * s.tokenStride);
  }
}

template <Isa isa> void runHalves(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<RotaryState>();
  HalfConversion half(floatLoops(isa), call.in[0].type);
  int64_t pairs = s.rotated / 2;
  float *cos = reinterpret_cast<float *>(part.scratch), *sin = cos + pairs, *x = cos + s.rotated;
  forTokens(call, s, part, [&](int64_t position, int64_t at) {
    half.toFloat(call.in[1].as<const uint16_t>() + position * pairs, cos, pairs);
    half.toFloat(call.in[2].as<const uint16_t>() + position * pairs, sin, pairs);
    for (int64_t h = 0; h < s.heads; ++h) {
      half.toFloat(call.in[0].as<const uint16_t>() + at + h * s.headStride, x, s.headSize);
      rotateHead(s, x, cos, sin, x + s.headSize);
      half.fromFloat(x + s.headSize, call.out[0].as<uint16_t>() + at + h * s.headStride, s.headSize);
    }
  });
}

} // namespace

bool acceptsRotaryHalves(const KernelCall &call) { return isHalf(call.in[0].type); }
void runRotaryHalvesAvx2(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  runHalves<Isa::Avx2>(call, work, part);
}
void runRotaryHalvesAvx512(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  runHalves<Isa::Avx512>(call, work, part);
}

void runRotaryEmbedding(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<RotaryState>();
  dispatchFloat(call.in[0].type, [&]<typename T>() {
    int64_t half = s.rotated / 2;
    forTokens(call, s, part, [&](int64_t position, int64_t at) {
      for (int64_t h = 0; h < s.heads; ++h)
        rotateHead(s, call.in[0].as<const T>() + at + h * s.headStride,
                   call.in[1].as<const T>() + position * half, call.in[2].as<const T>() + position * half,
                   call.out[0].as<T>() + at + h * s.headStride);
    });
  });
}

} // namespace dspark
