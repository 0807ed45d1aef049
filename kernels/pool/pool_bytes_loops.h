// The loops of pool_bytes.h, included once per ISA level.
#pragma once
#include "kernels/common/contract.h"
#include "kernels/common/vector_math.h"
#include "kernels/pool/pool_bytes.h"

namespace dspark {
namespace {

constexpr int64_t kMaxBlock = 32;
typedef uint8_t bytesBlock __attribute__((ext_vector_type(kMaxBlock)));
typedef uint8_t bytesBlockAt __attribute__((ext_vector_type(kMaxBlock), aligned(1)));

// Channels [c, c + lanes); fewer than a block go through a copy.
template <typename Vector> DSPARK_SIMD Vector loadChannels(const uint8_t *x, int64_t lanes) {
  Vector v = Vector(uint8_t(0));
  __builtin_memcpy(&v, x, lanes == int64_t(sizeof(v)) ? sizeof(v) : size_t(lanes));
  return v;
}

void maxBytes(const PoolBytes &pixel) {
  DSPARK_EXPECTS(isReadable(pixel.taps, pixel.count) && isReadable(pixel.y, pixel.channels));
  for (int64_t c = 0; c < pixel.channels; c += kMaxBlock) {
    int64_t lanes = pixel.channels - c < kMaxBlock ? pixel.channels - c : kMaxBlock;
    bytesBlock best = bytesBlock(uint8_t(0));
    for (int64_t tap = 0; tap < pixel.count; ++tap)
      best = __builtin_elementwise_max(best, loadChannels<bytesBlock>(pixel.taps[tap] + c, lanes) ^
                                                 bytesBlock(pixel.xFlip));
    best ^= bytesBlock(pixel.yFlip);
    __builtin_memcpy(pixel.y + c, &best, lanes == kMaxBlock ? size_t(kMaxBlock) : size_t(lanes));
  }
}

void averageBytes(const PoolBytes &pixel) {
  DSPARK_EXPECTS(isReadable(pixel.taps, pixel.count) && isReadable(pixel.y, pixel.channels));
  using namespace simd;
  typedef uint8_t vu8 __attribute__((ext_vector_type(kLanes)));
  constexpr int kVectors = 4;
  for (int64_t c = 0; c < pixel.channels;) {
    int vectors = pixel.channels - c >= kVectors * kLanes ? kVectors : 1;
    int64_t lanes = pixel.channels - c < kLanes ? pixel.channels - c : kLanes;
    vi sum[kVectors] = {};
    for (int64_t tap = 0; tap < pixel.count; ++tap) {
      const uint8_t *x = pixel.taps[tap] + c;
      if (vectors == 1)
        sum[0] += __builtin_convertvector(loadChannels<vu8>(x, lanes) ^ vu8(pixel.xFlip), vi);
      else
        for (int v = 0; v < kVectors; ++v)
          sum[v] += __builtin_convertvector(loadChannels<vu8>(x + v * kLanes, kLanes) ^ vu8(pixel.xFlip), vi);
    }
    for (int v = 0; v < vectors; ++v, c += lanes) {
      vf value = round(__builtin_convertvector(sum[v] - pixel.shift, vf) * pixel.scale) + pixel.zero;
      value = select(value >= 0.0f, value, splat(0));
      value = select(value > 255.0f, splat(255), value);
      vu8 bytes = __builtin_convertvector(__builtin_convertvector(value, vi), vu8) ^ vu8(pixel.yFlip);
      __builtin_memcpy(pixel.y + c, &bytes, lanes == kLanes ? size_t(kLanes) : size_t(lanes));
    }
  }
}

} // namespace
} // namespace dspark
