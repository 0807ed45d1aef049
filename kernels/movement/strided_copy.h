// The engine of data movement: a copy over up to 16 axes with a stride on each side. Transposes, slices,
// broadcasts, tiles, splits and block shuffles are all such copies; they differ in strides only.
//
//   for i0 < size[0] ... for in < size[n]:  dst[sum(i * to)] = src[sum(i * from)]
//
// Axes that are adjacent in both tensors merge, so [B,T,H,D] -> [B,H,T,D] copies runs of D elements, and
// [N,H,W,C] -> [N,C,H,W] becomes a blocked transpose of HW x C.
#pragma once
#include "kernels/common/byte_tiles.h"
#include <cstddef>
#include <cstdint>

namespace dspark::movement {

inline constexpr int kMaxCopyAxes = 16;

struct StridedCopy {
  int32_t rank = 0;
  bool isEmpty = false, fits = true; // fits: no more than kMaxCopyAxes axes were added
  int64_t size[kMaxCopyAxes], from[kMaxCopyAxes], to[kMaxCopyAxes]; // outermost first; strides in elements

  /// The next axis inwards.
  void add(int64_t axisSize, int64_t fromStride, int64_t toStride);
};

/// Elements per side of a transposed block, and bytes of one piece of work.
inline constexpr int64_t kTransposeBlock = 64, kPieceBytes = kTileBytes;

/// A copy cut into units that may run in any order. `elementBytes` is a power of two up to 16.
struct CopyLoop {
  enum class Kind : uint8_t { Run, Fill, Strided, Transpose };
  StridedCopy copy;
  Kind kind;
  int8_t source; // Transpose: the axis that is contiguous in the source
  int32_t elementBytes;
  int64_t chunk, chunks; // elements of the last axis per unit, units along it
  int64_t chunksSource;  // Transpose: units along the source axis
  int64_t units;

  CopyLoop() = default;
  CopyLoop(const StridedCopy &copy, int elementBytes);
  /// Units that make up about kPieceBytes.
  int64_t unitsPerTile() const;
  uint32_t tiles() const;
  void run(const void *src, void *dst, uint32_t tileBegin, uint32_t tileEnd) const;

private:
  void runRows(const char *src, char *dst, int64_t begin, int64_t end) const;
  void runPieces(const char *src, char *dst, int64_t begin, int64_t end) const;
};

/// The whole copy for packed elements of 2 or 4 bits, offsets in elements. Bytes are shared between
/// neighbours, so it is one piece of work.
void copyPacked(const StridedCopy &copy, int bits, const void *src, int64_t srcOffset, void *dst,
                int64_t dstOffset);

/// `count` runs of `bytes` bytes, `from` and `to` bytes apart.
void copyRuns(const char *src, char *dst, int64_t count, int64_t from, int64_t to, int64_t bytes);

/// memcpy that does not call out for the short runs that movement is made of.
inline void copyRun(void *dst, const void *src, int64_t bytes) {
  if (bytes <= 16 && (bytes & (bytes - 1)) == 0) {
    switch (bytes) {
    case 1:
      __builtin_memcpy(dst, src, 1);
      return;
    case 2:
      __builtin_memcpy(dst, src, 2);
      return;
    case 4:
      __builtin_memcpy(dst, src, 4);
      return;
    case 8:
      __builtin_memcpy(dst, src, 8);
      return;
    case 16:
      __builtin_memcpy(dst, src, 16);
      return;
    default:
      return;
    }
  }
  __builtin_memcpy(dst, src, size_t(bytes));
}

/// A 16-byte element.
struct Wide {
  uint64_t low, high;
};

/// Calls f.operator()<T>() for the unsigned type T of that many bytes: 1, 2, 4, 8 or 16.
template <typename F> void dispatchBytes(int bytes, F &&f) {
  switch (bytes) {
  case 1:
    return f.template operator()<uint8_t>();
  case 2:
    return f.template operator()<uint16_t>();
  case 4:
    return f.template operator()<uint32_t>();
  case 8:
    return f.template operator()<uint64_t>();
  default:
    return f.template operator()<Wide>();
  }
}

} // namespace dspark::movement
