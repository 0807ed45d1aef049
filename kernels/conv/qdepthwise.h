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

/// A row of output pixels of a square kernel of 3 or 5 taps a side and stride 1 or 2, one block of channels,
/// whose weights have no zero point: by whole columns of the input, with the instruction for four bytes.
struct QDepthwiseColumns {
  const std::byte *const *lines; // [kernel] input pixels at the first output's first column, at the first
                                 // channel, to be read only inside the image,
  const int64_t *steps;          // and the bytes from one to the next, 0 for a line of padding
  const std::byte *padding;      // a pixel of zero points
  int64_t column, width;         // the first column, which may lie outside, and columns of the image
  int64_t kernel, stride, pixels;
  int64_t channels;   // 64, 32 or 16
  bool isSigned;      // x
  const std::byte *w; // [kernel columns][(kernel + 3) / 4][64][4 lines] by weights()
  // Arrays of 64: channel j lies at depthwisePlace(j), depthwisePlace(j + channels) ...
  const int32_t *start;        // what the sums begin with
  const float *scale, *offset; // and what they are scaled by and shifted
  const SumsResult *results; // [channels / 16]; of an y of 8 bits only the first one's place and range count
};
inline constexpr int64_t kColumnChannels = 64;
constexpr int64_t depthwisePlace(int64_t j) { return j % 16 / 4 * 16 + j / 16 * 4 + j % 4; }
struct QDepthwiseWeights {
  const int8_t *w; // [kernel][kernel][channels], `step` bytes apart
  int64_t step, kernel, channels;
  uint8_t zero; // of x as an unsigned byte
  std::byte *to;
  int32_t *start; // what takes the zero point off
};

struct QDepthwiseOps {
  void (*row)(const QDepthwiseRow &);
  /// Widens one block of weights [taps][channels], `step` bytes apart, less their zero points, to the pairs
  /// that `row` reads; what is missing in a pair or block is 0.
  void (*widen)(const int8_t *w, int64_t taps, int64_t step, int64_t channels, const int16_t *zero,
                int16_t *out);
  /// For QDepthwiseColumns; null where the level lacks the instruction.
  void (*columns)(const QDepthwiseColumns &) = nullptr;
  void (*weights)(const QDepthwiseWeights &) = nullptr;
};

extern const QDepthwiseOps qdepthwiseOpsBaseline, qdepthwiseOpsAvx2, qdepthwiseOpsAvx512;

inline const QDepthwiseOps &qdepthwiseOps(Isa isa) {
  return isa == Isa::Avx512 ? qdepthwiseOpsAvx512
         : isa == Isa::Avx2 ? qdepthwiseOpsAvx2
                            : qdepthwiseOpsBaseline;
}

} // namespace dspark
