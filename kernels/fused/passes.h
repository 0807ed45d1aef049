// How a program with reductions walks a row: in passes, each of which has what the reductions of earlier ones
// made. Softmax is three: the maximum; exponentials and their sum; quotients. The row stays in the cache, so
// a pass reads its inputs again rather than memory.
#pragma once
#include "kernels/fused/program.h"

namespace dspark {

struct FusedPasses {
  int count; // over each row; the last one writes the results of full shape, if there are any
  /// Per value: the reductions on the longest way to it, which is the first pass that can compute it.
  uint8_t level[kMaxFusedValues];
  /// Whether the value is the same for the whole row. Such values are computed once, before pass level[v].
  bool isUniform[kMaxFusedValues];
  /// Bit p: pass p computes the value or, if it is an input or was kept by an earlier pass, reads it.
  uint16_t runs[kMaxFusedValues];

  bool runsIn(int value, int pass) const { return runs[value] >> pass & 1; }
};

/// The passes of a checked program whose inputs k with bit k of `uniform` set are the same for a whole row.
FusedPasses planPasses(const FusedBody &program, uint32_t uniform);

} // namespace dspark
