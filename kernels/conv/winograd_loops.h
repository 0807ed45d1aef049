// The transforms of winograd.h, included once per ISA level. Channels are in vector lanes; each transform
// runs over columns first, then rows, by way of a block of 36 (24) vectors that stays in the L1 cache.
#pragma once
#include "kernels/common/contract.h"
#include "kernels/conv/winograd.h"
#include "kernels/conv/winograd_store.h"

namespace dspark {
namespace {

constexpr float kA = 0.70710678118654752f, kB = 1.41421356237309505f;
constexpr int kIn = kWinogradIn, kOut = kWinogradOut;
constexpr int64_t kPanelLanes = 16;

// Bt d
DSPARK_SIMD void inputTransform(const vf (&d)[kIn], vf (&t)[kIn]) {
  t[0] = fma(splat(-2.5f), d[2], d[0] + d[4]);
  vf even = fma(splat(-2), d[2], d[4]), odd = fma(splat(-2), d[1], d[3]);
  t[1] = fma(splat(kA), odd, even);
  t[2] = fma(splat(-kA), odd, even);
  even = fma(splat(-0.5f), d[2], d[4]), odd = fma(splat(-0.5f), d[1], d[3]);
  t[3] = fma(splat(kB), odd, even);
  t[4] = fma(splat(-kB), odd, even);
  t[5] = fma(splat(-2.5f), d[3], d[1] + d[5]);
}

// Rows 0 and 5, 1 and 2, or 3 and 4 of G g.
template <int Pair> DSPARK_SIMD void filterPair(const vf (&g)[3], vf &first, vf &second) {
  if constexpr (Pair == 0) {
    first = g[0];
    second = g[2];
    return;
  }
  vf even =
      fma(splat(Pair == 1 ? -2.0f / 3 : 1.0f / 6), g[0], g[2] * splat(Pair == 1 ? -1.0f / 3 : 1.0f / 3));
  float odd = Pair == 1 ? -2.0f / 3 * kA : kB / 6;
  first = fma(splat(odd), g[1], even);
  second = fma(splat(-odd), g[1], even);
}

// At m
DSPARK_SIMD void outputTransform(const vf (&m)[kIn], vf (&y)[kOut]) {
  vf sumA = m[1] + m[2], sumB = m[3] + m[4], oddA = m[1] - m[2], oddB = m[3] - m[4];
  y[0] = m[0] + (sumA + sumB);
  y[1] = fma(splat(kA), oddA, splat(kB) * oddB);
  y[2] = fma(splat(0.5f), sumA, splat(2) * sumB);
  y[3] = m[5] + fma(splat(kA / 2), oddA, splat(2 * kB) * oddB);
}

void winogradInput(const WinogradInput &tile) {
  DSPARK_EXPECTS(tile.pixels && tile.to && tile.channels > 0);
  DSPARK_EXPECTS(tile.step >= tile.channels);
  for (int64_t c = 0; c < tile.channels; c += kLanes) {
    int64_t lanes = tile.channels - c;
    vf columns[kIn][kIn]; // [row][column]
    unroll<kIn>([&](auto column) __attribute__((always_inline)) {
      vf d[kIn], t[kIn];
      unroll<kIn>(DSPARK_LAMBDA {
        const float *pixel = tile.pixels[i * kIn + column] + c;
        d[i] = lanes >= kLanes ? load(pixel) : loadLanes(pixel, lanes);
      });
      inputTransform(d, t);
      unroll<kIn>(DSPARK_LAMBDA { columns[i][column] = t[i]; });
    });
    float *to = tile.to + c;
    unroll<kIn>([&](auto row) __attribute__((always_inline)) {
      vf t[kIn];
      inputTransform(columns[row], t);
      unroll<kIn>(DSPARK_LAMBDA { store(to + (row * kIn + i) * tile.step, t[i]); });
    });
  }
}

template <int Pair> void filterRows(const WinogradFilters &filters) {
  int64_t tap = filters.inputs * kPanelLanes;
  for (int64_t at = 0; at < tap; at += kLanes) {
    vf rows[2][3];
    unroll<3>([&](auto column) __attribute__((always_inline)) {
      vf g[3];
      unroll<3>(DSPARK_LAMBDA { g[i] = load(filters.w + (i * 3 + column) * tap + at); });
      filterPair<Pair>(g, rows[0][column], rows[1][column]);
    });
    unroll<2>([&](auto row) __attribute__((always_inline)) {
      vf t[kIn];
      filterPair<0>(rows[row], t[0], t[5]);
      filterPair<1>(rows[row], t[1], t[2]);
      filterPair<2>(rows[row], t[3], t[4]);
      unroll<kIn>(DSPARK_LAMBDA { store(filters.to + (row * kIn + i) * filters.step + at, t[i]); });
    });
  }
}

void winogradFilters(const WinogradFilters &filters) {
  DSPARK_EXPECTS(filters.w && filters.to && filters.pair >= 0 && filters.pair < kWinogradPairs);
  DSPARK_EXPECTS(filters.step >= filters.inputs * kPanelLanes);
  if (filters.pair == 0)
    filterRows<0>(filters);
  else if (filters.pair == 1)
    filterRows<1>(filters);
  else
    filterRows<2>(filters);
}

// The tile's outputs of one vector of channels, line by line.
DSPARK_SIMD void storeLines(const WinogradOutput &tile, const vf (&y)[kOut][kOut], int64_t c) {
  for (int64_t line = 0; line < tile.height; ++line) {
    int64_t at = line * tile.line + c;
    vf row[1][kOut];
    unroll<kOut>(DSPARK_LAMBDA { row[0][i] = y[line][i]; });
    storeOutputs(row, tile.bias ? tile.bias + c : nullptr, tile.epilogue,
                 {tile.y + at, tile.pixel, tile.width, tile.columns - c,
                  tile.residual ? tile.residual + at : nullptr});
  }
}

void winogradOutput(const WinogradOutput &tile) {
  DSPARK_EXPECTS(tile.products && tile.y && tile.step >= tile.columns);
  DSPARK_EXPECTS(tile.height >= 1 && tile.height <= kOut && tile.width >= 1 && tile.width <= kOut);
  for (int64_t c = 0; c < tile.columns; c += kLanes) {
    vf rows[kOut][kIn], y[kOut][kOut];
    unroll<kIn>([&](auto column) __attribute__((always_inline)) {
      vf m[kIn], t[kOut];
      unroll<kIn>(DSPARK_LAMBDA { m[i] = load(tile.products + (i * kIn + column) * tile.step + c); });
      outputTransform(m, t);
      unroll<kOut>(DSPARK_LAMBDA { rows[i][column] = t[i]; });
    });
    unroll<kOut>(DSPARK_LAMBDA { outputTransform(rows[i], y[i]); });
    storeLines(tile, y, c);
  }
}

} // namespace
} // namespace dspark
