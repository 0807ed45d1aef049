// Tiles of igemm_quads.h whose sums become bytes in registers: what zero points of A and the bias add is what
// the sums begin with, and four vectors of sums become one of bytes. Through memory, row by row, a sum took
// as long as the product of 64 terms.
//
// Included behind igemm_vnni.h.
#pragma once
#include "kernels/common/quad_bytes.h"
#include "kernels/matmul/igemm_quads.h"
#include "kernels/matmul/igemm_sums.h"

namespace dspark {
namespace {

// Where P panels that lie beside each other go, and how.
template <int P> struct BytePanels {
  const float *scale[P], *offset[P];
  QuadSums start[P];
  simd::QuadNarrowing narrow;
  std::byte *y;
  int64_t stride;
};

template <int R, int P>
void byteRows(const IgemmTile &tile, int64_t row, int64_t panel, const BytePanels<P> &given) {
  constexpr int kRows = 4 / P;    // of one vector of bytes
  const BytePanels<P> to = given; // a copy, which stores to y cannot change
  QuadSums sum[R][P];
  sumQuads(tile, row, panel, to.start, sum);
  std::byte *y = to.y + row * to.stride;
  unroll<(R + kRows - 1) / kRows>([&](auto block) __attribute__((always_inline)) {
    constexpr int kFirst = decltype(block)::value * kRows;
    __m512 value[4];
    unroll<4>(DSPARK_LAMBDA {
      constexpr int kRow = kFirst + i / P < R ? kFirst + i / P : R - 1;
      value[i] = _mm512_cvtepi32_ps(sum[kRow][i % P]) * _mm512_loadu_ps(to.scale[i % P]) +
                 _mm512_loadu_ps(to.offset[i % P]);
    });
    __m512i rows = simd::bytesInOrder(to.narrow(value));
    unroll<kRows>(DSPARK_LAMBDA {
      if constexpr (kFirst + i < R) {
        std::byte *at = y + (kFirst + i) * to.stride;
        if constexpr (P == 2)
          _mm256_storeu_si256(reinterpret_cast<__m256i *>(at), _mm512_extracti64x4_epi64(rows, i));
        else
          _mm_storeu_si128(reinterpret_cast<__m128i *>(at), _mm512_extracti32x4_epi32(rows, i));
      }
    });
  });
}

template <int P> void bytePanels(const IgemmTile &tile, int64_t panel) {
  using Rows = void (*)(const IgemmTile &, int64_t, int64_t, const BytePanels<P> &);
  static constexpr auto kRows = rowTable<Rows, kQuadRows>([]<int R>() -> Rows { return byteRows<R, P>; });
  const SumsResult &first = tile.results[panel];
  BytePanels<P> to = {{}, {}, {}, simd::QuadNarrowing(first.range), first.bytes, first.stride};
  for (int p = 0; p < P; ++p) {
    const SumsResult &result = tile.results[panel + p];
    to.scale[p] = result.scale;
    to.offset[p] = result.offset;
    to.start[p] = takeOff(loadQuads(result.bias), panelSums(tile, panel + p), tile.aZero[0]);
  }
  evenBlocks(0, tile.rows, kQuadRows, [&](int64_t size, int64_t row) { kRows[size](tile, row, panel, to); });
}

// Whether sums become 16 bytes a row, by scales that leave them in int32.
bool makesBytes(const SumsResult &result) {
  return !result.floats && result.columns == kIntegerColumns && staysWhole(result.scale, result.offset);
}
bool hasOneZero(const IgemmTile &tile) {
  int16_t different = 0;
  for (int64_t r = 0; r < tile.rows; ++r)
    different |= tile.aZero[r] ^ tile.aZero[0];
  return different == 0;
}

// finishSums, four rows at a time.
void finishQuadSums(const int32_t *sums, const SumsResult &given) {
  SumsResult to = given;
  int64_t row = 0;
  if (makesBytes(to)) {
    const simd::QuadNarrowing narrow(to.range);
    const __m512i bias = _mm512_loadu_si512(to.bias);
    const __m512 scale = _mm512_loadu_ps(to.scale), offset = _mm512_loadu_ps(to.offset);
    for (; row + 4 <= to.rows; row += 4) {
      __m512 value[4];
      unroll<4>(DSPARK_LAMBDA {
        __m512i sum = _mm512_loadu_si512(sums + (row + i) * kIntegerColumns);
        value[i] = _mm512_cvtepi32_ps(_mm512_add_epi32(sum, bias)) * scale + offset;
      });
      __m512i rows = simd::bytesInOrder(narrow(value));
      unroll<4>(DSPARK_LAMBDA {
        _mm_storeu_si128(reinterpret_cast<__m128i *>(to.bytes + (row + i) * to.stride),
                         _mm512_extracti32x4_epi32(rows, i));
      });
    }
    to.bytes += row * to.stride;
    to.rows -= row;
  }
  finishSums(sums + row * kIntegerColumns, to);
}

void finishedQuadTile(const IgemmTile &tile) {
  expectTile(tile);
  bool mayBeBytes = tile.results && tile.rows > 0 && hasOneZero(tile);
  for (int64_t panel = 0, count; panel < tile.panels; panel += count) {
    bool isPair = panel + 2 <= tile.panels;
    count = isPair ? 2 : 1;
    if (mayBeBytes && isPair && makesBytes(tile.results[panel]) && makesBytes(tile.results[panel + 1]) &&
        tile.results[panel + 1].bytes == tile.results[panel].bytes + kIntegerColumns) {
      bytePanels<2>(tile, panel);
    } else if (mayBeBytes && makesBytes(tile.results[panel])) {
      bytePanels<1>(tile, panel);
      count = 1;
    } else {
      isPair ? quadPanels<2>(tile, panel) : quadPanels<1>(tile, panel);
      for (int64_t p = panel; tile.results && p < panel + count; ++p)
        finishQuadSums(tile.c + p * tile.rows * kIntegerColumns, tile.results[p]);
    }
  }
}

} // namespace
} // namespace dspark
