// Winograd's convolution F(4x4, 3x3), channels last: 36 products make 4 x 4 outputs, which take 144 by the
// definition. For an input tile d of 6 x 6 pixels and a filter g,
//
//   y = At [(G g Gt) * (Bt d B)] A      (* elementwise, summed over input channels)
//
// so that over all tiles the middle is 36 matrix products, [tiles, inputs] x [inputs, outputs].
//
// Points of interpolation are 0, +-sqrt(1/2), +-sqrt(2) and infinity (B. Barabasz et al., "Error Analysis and
// Improving the Accuracy of Winograd Convolution for Deep Neural Networks", 2020, show how much they matter):
//
//   Bt = 1   0  -5/2   0   1  0     G =  1      0     0       At = 1  1    1   1   1   0
//        0  -2a  -2    a   1  0         -2/3  -2a/3  -1/3          0  a   -a   b  -b   0
//        0   2a  -2   -a   1  0         -2/3   2a/3  -1/3          0  1/2 1/2  2   2   0
//        0  -b/2 -1/2  b   1  0          1/6   b/6    1/3          0  a/2 -a/2 2b -2b  1
//        0   b/2 -1/2 -b   1  0          1/6  -b/6    1/3
//        0   1    0  -5/2  0  1          0      0     1            a = sqrt(1/2), b = sqrt(2)
//
// The error is about twice that of the direct sum in f32 (relative L2 against f64, rectified normal inputs
// of 16 / 64 / 256 channels: 4.8e-7 / 6.9e-7 / 1.2e-6 beside 1.6e-7 / 2.9e-7 / 5.7e-7); the usual points 0,
// +-1, +-2 have twice as much again. conv_test bounds it for each element.
//
// Plain data only: the files compiled for higher ISA levels include nothing else.
#pragma once
#include "kernels/common/isa.h"
#include "kernels/matmul/activation.h"
#include <cstdint>

namespace dspark {

inline constexpr int kWinogradIn = 6, kWinogradOut = 4; // pixels of a tile's side
inline constexpr int kWinogradPoints = kWinogradIn * kWinogradIn;

struct WinogradInput {
  const float *const *pixels; // [36] channels of each pixel of the tile
  int64_t channels;
  float *to;    // row of the first of the 36 matrices; whole vectors are written
  int64_t step; // floats from one matrix to the next
};

/// Twelve of a filter panel's 36 matrices: rows {0, 5}, {1, 2} or {3, 4} of G g Gt.
struct WinogradFilters {
  const float *w; // [9][inputs][16]
  int64_t inputs;
  int pair; // 0, 1, 2
  float *to;
  int64_t step; // floats from one matrix [inputs][16] to the next
};
inline constexpr int kWinogradPairs = 3, kWinogradPerPair = 2 * kWinogradIn;
/// Which of the 36 the i-th matrix of a pair is.
inline int winogradPoint(int pair, int i) {
  constexpr int kRows[kWinogradPairs][2] = {{0, 5}, {1, 2}, {3, 4}};
  return kRows[pair][i / kWinogradIn] * kWinogradIn + i % kWinogradIn;
}

struct WinogradOutput {
  const float *products; // one tile's row of the first of the 36 product matrices, whole vectors
  int64_t step;          // floats from one matrix to the next
  int64_t columns;       // output channels
  int64_t height, width; // outputs of the tile that exist, 1 to 4
  float *y;
  int64_t line, pixel;          // floats from one line, or pixel, of y to the next
  const float *bias, *residual; // or null; residual as y
  SumEpilogue epilogue;
};

struct WinogradOps {
  void (*input)(const WinogradInput &);
  void (*filters)(const WinogradFilters &);
  void (*output)(const WinogradOutput &);
};

extern const WinogradOps winogradOpsBaseline, winogradOpsAvx2, winogradOpsAvx512;

inline const WinogradOps &winogradOps(Isa isa) {
  return isa == Isa::Avx512 ? winogradOpsAvx512 : isa == Isa::Avx2 ? winogradOpsAvx2 : winogradOpsBaseline;
}

} // namespace dspark
