// How the convolutions by Winograd's transform cut their work and lay out their matrices in scratch.
#pragma once
#include <cstdint>

namespace dspark {

inline int64_t ceilOf(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// Where part `part` of `parts` nearly equal ones begins.
inline int64_t shareOf(int64_t all, int64_t part, int64_t parts) { return all * part / parts; }

/// Elements from one matrix of a transform to the next: an odd number of cache lines of `perLine` elements,
/// so that a transform's streams lie in different sets of the cache.
inline int64_t spaced(int64_t elements, int64_t perLine = 16) {
  return (ceilOf(elements, perLine) / 2 * 2 + 1) * perLine;
}

/// The offset of the next `floats` of scratch, which begin at a cache line.
inline int64_t takeFloats(int64_t &used, int64_t floats) {
  int64_t at = used;
  used += ceilOf(floats, 16) * 16;
  return at;
}

} // namespace dspark
