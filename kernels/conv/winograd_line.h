// Winograd's convolution along one axis, F(9 - r, r) for filters of r = 3, 5 or 7 taps, channels last: eight
// products make 9 - r outputs, which take r (9 - r) by the definition (18, 20 and 14). For eight pixels d and
// a filter g,
//
//   y = At [(G g) * (Bt d)]      (* elementwise, summed over input channels)
//
// so that over all tiles the middle is eight matrix products, [tiles, inputs] x [inputs, outputs]. The points
// of interpolation are 0, +-1, +-2, +-1/2 and infinity for all three, so they share Bt:
//
//   Bt = 1   0    -21/4   0     21/4   0    -1  0      G = c_p a_p^i, c = 1, -2/9, -2/9, 1/90, 1/90, 32/45,
//   32/45,
//        0   1     1    -17/4  -17/4   1     1  0          and a last row 0 .. 0 1
//        0  -1     1     17/4  -17/4  -1     1  0
//        0   1/2   1/4   -5/2   -5/4   2     1  0      At = a_p^i, and a last column 0 .. 0 1
//        0  -1/2   1/4    5/2   -5/4  -2     1  0
//        0   2     4     -5/2   -5    1/2    1  0      a = 0, 1, -1, 2, -2, 1/2, -1/2
//        0  -2     4      5/2   -5   -1/2    1  0
//        0  -1     0     21/4    0  -21/4    0  1
//
// The error is 2.4 times that of the direct sum in f32 (relative L2 against f64, five taps, rectified normal
// inputs of 256 channels: 1.15e-6 beside 4.7e-7); conv_winograd_line_test bounds it for each element.
//
// Plain data only: the files compiled for higher ISA levels include nothing else.
#pragma once
#include "kernels/common/isa.h"
#include "kernels/matmul/activation.h"
#include <cstdint>

namespace dspark {

inline constexpr int kLinePoints = 8, kMaxLineOut = 6;

struct LineInput {
  const float *const *pixels; // [8] channels of each pixel of the tile
  int64_t channels;
  float *to;    // row of the first of the eight matrices; whole vectors are written
  int64_t step; // floats from one matrix to the next
};

struct LineFilters {
  const float *w; // [taps][inputs][16]
  int64_t inputs;
  int taps; // 3, 5 or 7
  float *to;
  int64_t step; // floats from one of the eight matrices [inputs][16] to the next
};

struct LineOutput {
  const float *products; // one tile's row of the first of the eight product matrices, whole vectors
  int64_t step;          // floats from one matrix to the next
  int64_t columns;       // output channels
  int taps;
  int64_t count; // outputs of the tile that exist, 1 to 9 - taps
  float *y;
  int64_t pixel;                // floats from one output to the next
  const float *bias, *residual; // or null; residual as y
  SumEpilogue epilogue;
};

struct LineOps {
  void (*input)(const LineInput &);
  void (*filters)(const LineFilters &);
  void (*output)(const LineOutput &);
};

extern const LineOps lineOpsBaseline, lineOpsAvx2, lineOpsAvx512;

inline const LineOps &lineOps(Isa isa) {
  return isa == Isa::Avx512 ? lineOpsAvx512 : isa == Isa::Avx2 ? lineOpsAvx2 : lineOpsBaseline;
}

} // namespace dspark
