// The exact product of 8-bit operands: 32-bit sums of (a - zero) * b, b in panels of 16 columns by 4 terms
// (layout panel16k4), what becomes of the sums included. Nothing saturates on the way.
//
// Up to AVX2 both operands are widened to 16 bits and multiplied in pairs. The u8 x s8 instruction of AVX2,
// which takes bytes, adds its pairs in 16 bits and saturates at 2 * 255 * 127: igemm_bytes.h uses it where
// weights are too small for that. It then needs a second multiplication by ones to get to 32 bits: 32
// multiply-adds a cycle either way, twice what f32 does, but with fewer additions. AVX-512 has VNNI, which
// sums four products of u8 x s8 in 32 bits.
//
// Plain data only: the files compiled for higher ISA levels include nothing else.
#pragma once
#include "kernels/common/byte_range.h"
#include "kernels/common/isa.h"
#include "kernels/matmul/activation.h"
#include <cstddef>
#include <cstdint>

namespace dspark {

inline constexpr int64_t kIntegerColumns = 16; // of a panel
inline constexpr int64_t kIntegerPanels = 2;   // of one tile at most
inline constexpr int64_t kIntegerRows = 288;   // of one tile at most
/// Terms whose 16-bit form is made at a time, so that it stays in the L1 cache. A multiple of 4.
inline constexpr int64_t kIntegerBlock = 512;
inline constexpr int64_t kIntegerScratch = kIntegerBlock * kIntegerColumns * 2; // bytes of IgemmTile::scratch

/// Bytes of a panel without and with the sums of its columns behind it.
inline constexpr int64_t panelBytes(int64_t k) { return (k + 3) / 4 * 4 * kIntegerColumns; }
inline constexpr int64_t packedPanelBytes(int64_t k) { return panelBytes(k) + kIntegerColumns * 4; }

/// What becomes of one panel's sums: act(sum * scale + offset + residual) in f32, or of sum * scale + offset
/// the nearest whole number, bounded, plus a zero point, in 8 bits.
struct SumsResult {
  const int32_t *bias;           // [16], added to the sums, which wrap around as ONNX's do
  const float *scale, *offset;   // [16]
  int64_t columns, rows, stride; // of y, in elements
  std::byte *bytes;              // y
  float *floats;                 // y if it is f32, or null: 8 bits, in
  ByteRange range;
  const float *residual = nullptr; // of an f32 y, placed like it; null: none
  SumEpilogue epilogue = {};       // of an f32 y
};

namespace {
/// Whether int32 holds sum * scale + offset for every sum, as with the scales of any usual network; not if
/// one is NaN.
[[maybe_unused]] inline bool staysWhole(const float *scale, const float *offset) {
  int large = 0;
  for (int64_t j = 0; j < kIntegerColumns; ++j)
    large |= !(__builtin_fabsf(scale[j]) <= 0x1p-1f) | !(__builtin_fabsf(offset[j]) <= 0x1p29f);
  return large == 0;
}
} // namespace

struct IgemmTile {
  const std::byte *a;   // [rows] of rowBytes(k), made by `row` and `fill`
  const int16_t *aZero; // [rows] zero points by rowZero()
  int64_t rows, k;
  const std::byte *b; // [panels] of packedPanelBytes(k)
  int64_t panels;
  std::byte *scratch;
  int32_t *c;                // [panels][rows][16]
  const SumsResult *results; // [panels], and c is undefined afterwards; or null: the sums stay in c
};

struct IgemmOps {
  int64_t elementBytes; // of a row of A that a tile reads
  void (*tile)(const IgemmTile &);
  /// Packs `columns` columns (at most 16) of B into a panel and sums. Element (k, n) lies at k * kStride + n
  /// * nStride; unsigned ones are made signed by taking 128 off.
  void (*pack)(const void *b, bool isSigned, int64_t k, int64_t columns, int64_t kStride, int64_t nStride,
               std::byte *panel);
  /// Part of a row of A: `count` values at `step` apart.
  void (*row)(const void *a, bool isSigned, int64_t count, int64_t step, int16_t zero, std::byte *out);
  /// Part of a row of A whose values are the zero point.
  void (*fill)(bool isSigned, int64_t count, int16_t zero, std::byte *out);
  /// Sum over a row of A less its zero point, which is given by rowZero().
  int32_t (*rowSum)(const std::byte *row, int64_t k, int16_t zero);
  /// Sums [rows][16] to a result.
  void (*finish)(const int32_t *sums, const SumsResult &);
  /// Whether these operations suit a panel's weights better than the level's others; null where it has no
  /// others.
  bool (*suits)(const std::byte *panel, int64_t k) = nullptr;
  /// What `row` does for `count` values beside each other, `runs` times: from `stride` values, to `outStep`
  /// bytes after the run before. Null: by row.
  void (*runs)(const void *a, bool isSigned, int64_t count, int64_t stride, int64_t runs, std::byte *out,
               int64_t outStep) = nullptr;
};

extern const IgemmOps igemmOpsBaseline, igemmOpsAvx2, igemmOpsAvx2Bytes, igemmOpsAvx512, igemmOpsAmx;

inline const IgemmOps &igemmOps(Isa isa) {
  return isa == Isa::Amx      ? igemmOpsAmx
         : isa == Isa::Avx512 ? igemmOpsAvx512
         : isa == Isa::Avx2   ? igemmOpsAvx2
                              : igemmOpsBaseline;
}

/// The operations for tiles of many rows with packed weights, judged by their first panel.
inline const IgemmOps &igemmOpsFor(Isa isa, const std::byte *panel, int64_t k, int64_t rows) {
  bool mayBeBytes = isa == Isa::Avx2 && k >= 256 && rows >= 32;
  return mayBeBytes && igemmOpsAvx2Bytes.suits(panel, k) ? igemmOpsAvx2Bytes : igemmOps(isa);
}

/// A zero point of A in the form of the rows that `ops` makes.
inline int16_t rowZero(const IgemmOps &ops, bool isSigned, int16_t zero) {
  return ops.elementBytes == 1 && isSigned ? int16_t(zero + 128) : zero;
}
/// Whether row() changes nothing.
inline bool takesRowsAsTheyAre(const IgemmOps &ops, bool isSigned) {
  return ops.elementBytes == 1 && !isSigned;
}
/// Bytes of a row of A; terms beyond k are zero points.
inline int64_t rowBytes(const IgemmOps &ops, int64_t k) { return (k + 3) / 4 * 4 * ops.elementBytes; }

} // namespace dspark
