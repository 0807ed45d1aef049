// Which scale belongs to which element: one for the tensor, one per index along an axis, or one per block of
// consecutive indices along an axis (the scale tensor then has the operand's rank).
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

enum class Granularity : uint8_t { Tensor, Axis, Block };

/// The operand as [outer, length, inner] around the axis.
struct ScaleMap {
  Granularity granularity;
  int64_t length, inner;
  int64_t block, blocks; // indices per scale along the axis, and scales along it

  ScaleMap() = default;
  ScaleMap(const TensorView &x, const TensorView &scale, const Attrs &attrs);

  struct Run {
    int64_t n;     // elements
    int64_t scale; // the scale of the first
    int64_t step;  // 0: the same for all; 1: the next one for each
  };
  /// The run that starts at element `at` and ends before `end`.
  Run runAt(int64_t at, int64_t end) const;
};

} // namespace dspark
