// The product of gemm.h with operands in bf16: pairs of them lie where f32 elements would, an odd number of
// channels is filled up with a zero, and sums are of f32.
#pragma once
#include "kernels/matmul/gemm.h"

namespace dspark {

struct Bf16GemmOps {
  /// Computes one tile; its `a`, `b`, `depth`, `panelStride` and `tapOffset` count pairs.
  void (*tile)(const GemmTile &);
  /// Rounds rows of `width` floats to the nearest bf16, each filled up to whole pairs.
  void (*round)(const float *x, int64_t rows, int64_t width, uint16_t *out);
};

/// By multiply-adds of what was rounded; Avx512Bf16's by vdpbf16ps, which it needs; Amx's by tiles, in an
/// order of sums of its own, with the scratch `parts` (gemm_bf16_tiles.h).
extern const Bf16GemmOps bf16GemmOpsBaseline, bf16GemmOpsAvx2, bf16GemmOpsAvx512, bf16GemmOpsAvx512Bf16,
    bf16GemmOpsAmx;

inline const Bf16GemmOps &bf16GemmOps(Isa isa) {
  return isa == Isa::Amx      ? bf16GemmOpsAmx
         : isa == Isa::Avx512 ? bf16GemmOpsAvx512
         : isa == Isa::Avx2   ? bf16GemmOpsAvx2
                              : bf16GemmOpsBaseline;
}

} // namespace dspark
