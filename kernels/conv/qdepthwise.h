// Depthwise convolution of 8-bit operands with channels last: taps are multiplied in pairs as 16-bit values,
// 16 channels at a time. Plain data: the files of the ISA levels include nothing else.
#pragma once
#include "kernels/matmul/igemm.h"

namespace dspark {

inline constexpr int64_t kDepthwiseChannels = 16; // of one block

/// Output pixels that follow each other, one block of channels.
struct QDepthwiseRow {
  /// [2 * pairs] input pixels of the first output, at channel 0; padding is a row of zero points.
  const std::byte *const *taps;
  int64_t tapStep, byteStep; // to the next output: further pointers, or the same ones so many bytes on
  int64_t pixels, pairs;
  int64_t channel, channels; // the block's first, and how many there are of it (16 or less)
  bool isSigned;             // x
  const int16_t *w;          // [pairs][16][2] by widen(), which decides the order of channels
  const int32_t *start;      // [16] what the sums begin with
  int32_t *sums;             // [16] of the only pixel, or null:
  const SumsResult *result;  // what the sums of each pixel become
};

struct QDepthwiseOps {
  void (*row)(const QDepthwiseRow &);
  /// Widens one block of weights [taps][channels], `step` bytes apart, less their zero points, to the pairs
  /// that `row` reads; what is missing in a pair or block is 0.
  void (*widen)(const int8_t *w, int64_t taps, int64_t step, int64_t channels, const int16_t *zero,
                int16_t *out);
};

extern const QDepthwiseOps qdepthwiseOpsBaseline, qdepthwiseOpsAvx2, qdepthwiseOpsAvx512;

inline const QDepthwiseOps &qdepthwiseOps(Isa isa) {
  return isa == Isa::Avx512 ? qdepthwiseOpsAvx512
         : isa == Isa::Avx2 ? qdepthwiseOpsAvx2
                            : qdepthwiseOpsBaseline;
}

} // namespace dspark
