// How a reduction walks its operand: dims of 1 vanish, adjacent dims that are all kept or all reduced merge.
//
//   [K, R]     rows:  each result folds contiguous runs
//   [K, R, K]  lanes: the last kept axis is contiguous, results are folded side by side
//   [R, K, R, K] and so on: the same with an odometer around it
#pragma once
#include "kernels/common/kernel.h"

namespace dspark::reduce_ops {

struct ReducePlan {
  int32_t kept = 0, reduced = 0; // numbers of axes
  int64_t keptSize[kMaxRank], keptStride[kMaxRank];
  int64_t reducedSize[kMaxRank], reducedStride[kMaxRank];
  bool isRows = true;                  // the last axis is reduced
  int64_t outputs = 1, folded = 1;     // results, elements that make one
  int64_t sliceLength = 0, slices = 1; // a long fold is cut into slices whose results are joined in order

  /// Offset of the first element of result o.
  int64_t keptOffset(int64_t o) const { return offset(o, kept, keptSize, keptStride); }
  /// Offset of reduced index r from there.
  int64_t reducedOffset(int64_t r) const { return offset(r, reduced, reducedSize, reducedStride); }

private:
  static int64_t offset(int64_t index, int axes, const int64_t *size, const int64_t *stride) {
    int64_t at = 0;
    for (int i = axes - 1; i > 0; --i) {
      at += index % size[i] * stride[i];
      index /= size[i];
    }
    return axes > 0 ? at + index * stride[0] : 0;
  }
};

/// Flags of reduced axes over [0, rank): from attribute `axes`, or from operand 1's contents if it is
/// present.
uint32_t reducedAxes(const KernelCall &call);
ReducePlan planReduce(const TensorView &x, uint32_t reducedAxes);
/// Whether the axes are known without reading operand 1.
inline bool axesAreAttributes(const KernelCall &call) { return !call.has(1); }

} // namespace dspark::reduce_ops
