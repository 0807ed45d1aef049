// The f32 product that matmul, convolution and the recurrent operators share: rows of A given by addresses, B
// in panels of 16 columns, bias, residual and activation applied to the registers before they are stored.
//
// A convolution is the same product as a matmul with more than one tap: row r of tap t starts at a[t *
// aStride + r], and padding is a row of zeros. The sum over (tap, k) runs in that order in every kernel, one
// fused multiply-add after the other, so a row's result depends neither on the number of rows nor on how work
// is cut (per ISA level). Level Amx can multiply by tiles instead, in an order of its own (gemm_tiles.h).
//
// Plain data only: the files compiled for higher ISA levels include nothing else.
#pragma once
#include "kernels/common/isa.h"
#include "kernels/matmul/activation.h"
#include <cstdint>

namespace dspark {

inline constexpr int64_t kPanel = 16; // columns

inline constexpr int64_t kMaxTileRows = 256;
inline constexpr int64_t kBlockTerms = 512; // terms of the sum that are added up at a time, at most
inline constexpr int64_t kCopyStride =
    kBlockTerms + 16; // no multiple of a page, so that rows lie in different cache sets
inline constexpr int64_t kGemmCopyFloats = kMaxTileRows * kCopyStride;

/// Terms that tiles take at a time, and the room for the parts of that many: all rows and two panels, three
/// bf16 for every f32.
inline constexpr int64_t kGemmPartTerms = 256;
inline constexpr int64_t kGemmPartElements = (kMaxTileRows + 2 * kPanel) * kGemmPartTerms * 3;

struct GemmTile {
  const float *const *a; // [taps][aStride] addresses of rows, of which `rows` count
  int64_t aStride;
  float *const *c;     // [rows] where each row of the result begins
  int64_t rows;        // at most kMaxTileRows
  int64_t taps, depth; // the sum has taps * depth terms
  const float *b;      // [ceil(columns/16)][panelStride]
  int64_t panelStride;
  const int64_t
      *tapOffset; // [taps] floats from a panel's begin to tap t's rows [depth][16]; null: one after the other
  int64_t columns;

  // y = act(scale * sum + bias + residual)
  const float *scale;    // [columns], or null
  const float *bias;     // [columns], or null
  const float *residual; // of the first row and column, rows spaced as in c; or null
  SumEpilogue epilogue;

  float *copy;     // kGemmCopyFloats of scratch, or null: where long rows are gathered block by block (see
                   // gemm_loops.h)
  uint16_t *parts; // kGemmPartElements of scratch at a cache line, or null: no product by tiles
};

struct GemmOps {
  /// Computes one tile.
  void (*tile)(const GemmTile &);
  /// Copies 16 columns of B into a panel [k][16]; element (i, j) of B lies at b[i * kStride + j * nStride],
  /// columns beyond `columns` become zero.
  void (*pack)(const float *b, int64_t k, int64_t columns, int64_t kStride, int64_t nStride, float *panel);
  /// The same for 8-bit B, minus zero[j], widened to f32.
  void (*widen)(const void *b, bool isSigned, int64_t k, int64_t columns, int64_t kStride, int64_t nStride,
                const float *zero, float *panel);
  int rowBlock; // rows that one register tile holds
};

extern const GemmOps gemmOpsBaseline, gemmOpsAvx2, gemmOpsAvx512, gemmOpsAmx;

inline const GemmOps &gemmOps(Isa isa) {
  return isa == Isa::Amx      ? gemmOpsAmx
         : isa == Isa::Avx512 ? gemmOpsAvx512
         : isa == Isa::Avx2   ? gemmOpsAvx2
                              : gemmOpsBaseline;
}

} // namespace dspark
