// How kernels share out work and lay out scratch.
#pragma once
#include <cstdint>

namespace dspark {

inline int64_t ceilOf(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// Where part `part` of `parts` nearly equal ones begins.
inline int64_t shareOf(int64_t all, int64_t part, int64_t parts) { return all * part / parts; }

/// Of tiles that could be `parts`: an even number, so that two threads have as many.
inline int64_t evenParts(int64_t parts) { return parts > 1 ? parts - parts % 2 : parts; }

/// The offset of the next `floats` (or other elements of 4 bytes) of scratch, which begin at a cache line.
inline int64_t takeFloats(int64_t &used, int64_t floats) {
  int64_t at = used;
  used += ceilOf(floats, 16) * 16;
  return at;
}
/// The same for bytes.
inline int64_t takeBytes(int64_t &used, int64_t bytes) {
  int64_t at = used;
  used += ceilOf(bytes, 64) * 64;
  return at;
}

} // namespace dspark
