// Winograd's convolution F(4x4, 3x3) of 8-bit operands, exact, channels last: 36 products make 4 x 4 outputs,
// which take 144 by the definition.
//
//   y = At [(G g Gt) * (Bt d B)] A      (* elementwise, summed over input channels)
//
// with the points of interpolation 0, +-1, +-2 and infinity. G's rows are taken 4, -6, -6, 24, 24 and 1
// times, so that filters stay whole, and At divides by that at the end, for each line of outputs by 3 times a
// power of two:
//
//   Bt = 4  0 -5  0  1  0     G = 1  0  0     At = 1/24  6 -4 -4  1  1  0
//        0 -4 -4  1  1  0         1  1  1          1/12  0 -2  2  1 -1  0
//        0  4 -4 -1  1  0         1 -1  1          1/6   0 -1 -1  1  1  0
//        0 -2 -1  2  1  0         1  2  4          1/6   0 -1  1  2 -2  6
//        0  2 -1 -2  1  0         1 -2  4
//        0  4  0 -5  0  1         0  0  1
//
// Why nothing is lost: pixels less their zero point span 255, so that a transformed input is at most 10 * 10
// * 255 = 25500, a transformed filter at most 7 * 7 * 255 = 12495: both fit 16 bits, and a sum of two
// products 32. From there on everything is modulo 2^32: sums may wrap, At gives 9 * 2^e times the output, the
// nine goes by multiplying with its inverse, and what is left is the number itself wherever 2^e times it fits
// 32 bits. e is 6 at most, so that a sum over few enough channels fits whatever the bytes are
// (kWinogradChannels); further channels are added in whole numbers. Modulo arithmetic in Winograd's
// transform: Liu & Mattina, "Efficient Residue Number System Based Winograd Convolution", 2020, who use
// smaller moduli.
//
// Plain data only: the files compiled for higher ISA levels include nothing else.
#pragma once
#include "kernels/common/isa.h"
#include <cstddef>
#include <cstdint>

namespace dspark {

inline constexpr int kQWinogradIn = 6, kQWinogradOut = 4; // pixels of a tile's side
inline constexpr int kQWinogradPoints = kQWinogradIn * kQWinogradIn;
/// Input channels, multiples of 16, over which 64 * 9 * 255 * |w| summed stay below 2^31: of weights in
/// [-128, 127], and of weights less a zero point.
inline constexpr int64_t kWinogradChannels = 112, kWinogradZeroChannels = 48;
static_assert(64 * 9 * 255 * 128 * kWinogradChannels < INT64_C(1) << 31);
static_assert(64 * 9 * 255 * 255 * kWinogradZeroChannels < INT64_C(1) << 31);

struct QWinogradInput {
  const std::byte *const *pixels; // [36] channels of each pixel of the tile
  int64_t channels;               // a multiple of 16
  bool isSigned;
  int16_t zero;
  int16_t *to;  // row of the first of the 36 matrices
  int64_t step; // words from one matrix to the next
};

/// Filters of 16 outputs and some inputs as 36 matrices [count / 2][16][2].
struct QWinogradFilters {
  const int8_t *panel;          // panel16k4 of 9 * inputs terms
  int64_t inputs, first, count; // input channels [first, first + count), multiples of 16
  const int16_t *zero;          // [16], or null where all are 0
  int16_t *wide;                // room for 9 * count * 16
  int16_t *to;
  int64_t step;
};

/// The 36 products of rows and filters.
struct QWinogradProducts {
  const int16_t *a; // [rows], `stride` words apart
  const int16_t *b; // [depth / 2][16][2]
  int32_t *c;       // [rows][16]
  int64_t stride, rows, depth;
  int64_t aPoint, bPoint, cPoint; // elements from one matrix to the next
};

struct QWinogradOutput {
  const int32_t *products; // one tile's row of the first of the 36 product matrices
  int64_t step;
  int32_t
      *sums; // of the tile's first pixel: [4 lines, `line` apart][4 pixels][16]; added to unless `isFirst`
  int64_t line;
  bool isFirst;
};

struct QWinogradOps {
  void (*input)(const QWinogradInput &);
  void (*filters)(const QWinogradFilters &);
  void (*multiply)(const QWinogradProducts &);
  void (*output)(const QWinogradOutput &);
};

extern const QWinogradOps qwinogradOpsBaseline, qwinogradOpsAvx2, qwinogradOpsAvx512;

inline const QWinogradOps &qwinogradOps(Isa isa) {
  return isa == Isa::Avx512 ? qwinogradOpsAvx512 : isa == Isa::Avx2 ? qwinogradOpsAvx2 : qwinogradOpsBaseline;
}

} // namespace dspark
