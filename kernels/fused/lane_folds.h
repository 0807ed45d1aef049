// Folds of rows in the order that program.h fixes: per ISA level, fusedLanes(level) numbers that take
// elements in turn. One table per level (lane_folds_impl.h is compiled three times).
#pragma once
#include "kernels/fused/program.h"

namespace dspark {

struct LaneFolds {
  /// lane[i % W] = fold(lane[i % W], x[i]) for i < n, in order.
  void (*fold[kFusedReduceCount])(const float *x, int64_t n, float *lanes);
  /// total[l] = fold(total[l], lanes[l]), and lanes[l] becomes the identity.
  void (*join[kFusedReduceCount])(float *total, float *lanes);
  /// The lanes as a tree: half of them with the other half, until one is left.
  float (*tree[kFusedReduceCount])(const float *lanes);
};

extern const LaneFolds kLaneFoldsBaseline, kLaneFoldsAvx2, kLaneFoldsAvx512;

inline const LaneFolds &laneFolds(Isa isa) {
  return isa == Isa::Avx512 ? kLaneFoldsAvx512 : isa == Isa::Avx2 ? kLaneFoldsAvx2 : kLaneFoldsBaseline;
}

/// What a fold of nothing is.
inline float foldIdentity(FusedReduce kind) {
  return kind == FusedReduce::Max ? -__builtin_inff() : kind == FusedReduce::Min ? __builtin_inff() : 0.0f;
}

} // namespace dspark
