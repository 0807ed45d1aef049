// How the convolutions by Winograd's transform lay out their matrices in scratch.
#pragma once
#include "kernels/common/shares.h"

namespace dspark {

/// Elements from one matrix of a transform to the next: an odd number of cache lines of `perLine` elements,
/// so that a transform's streams lie in different sets of the cache.
inline int64_t spaced(int64_t elements, int64_t perLine = 16) {
  return (ceilOf(elements, perLine) / 2 * 2 + 1) * perLine;
}

} // namespace dspark
