// The transforms of winograd_line.h, included once per ISA level. Channels are in vector lanes.
#pragma once
#include "kernels/common/contract.h"
#include "kernels/conv/winograd_line.h"
#include "kernels/conv/winograd_store.h"

namespace dspark {
namespace {

constexpr int64_t kPanelLanes = 16;

void lineInput(const LineInput &tile) {
  DSPARK_EXPECTS(tile.pixels && tile.to && tile.channels > 0);
  DSPARK_EXPECTS(tile.step >= tile.channels);
  for (int64_t c = 0; c < tile.channels; c += kLanes) {
    int64_t lanes = tile.channels - c;
    vf d[kLinePoints], t[kLinePoints];
    unroll<kLinePoints>(DSPARK_LAMBDA {
      d[i] = lanes >= kLanes ? load(tile.pixels[i] + c) : loadLanes(tile.pixels[i] + c, lanes);
    });
    t[0] = fma(splat(5.25f), d[4] - d[2], d[0] - d[6]);
    t[7] = fma(splat(5.25f), d[3] - d[5], d[7] - d[1]);
    vf even = fma(splat(-4.25f), d[4], d[2] + d[6]), odd = fma(splat(-4.25f), d[3], d[1] + d[5]);
    t[1] = even + odd;
    t[2] = even - odd;
    even = fma(splat(-1.25f), d[4], fma(splat(0.25f), d[2], d[6]));
    odd = fma(splat(-2.5f), d[3], fma(splat(0.5f), d[1], d[5] + d[5]));
    t[3] = even + odd;
    t[4] = even - odd;
    even = fma(splat(-5), d[4], fma(splat(4), d[2], d[6]));
    odd = fma(splat(-2.5f), d[3], fma(splat(0.5f), d[5], d[1] + d[1]));
    t[5] = even + odd;
    t[6] = even - odd;
    unroll<kLinePoints>(DSPARK_LAMBDA { store(tile.to + c + i * tile.step, t[i]); });
  }
}

constexpr float powerOf(float a, int i) { return i == 0 ? 1 : a * powerOf(a, i - 1); }

// The filter's values at the points a and -a, times `scale`.
template <int Taps>
DSPARK_SIMD void filterPair(const vf (&g)[Taps], float a, float scale, vf &plus, vf &minus) {
  vf even = splat(0), odd = splat(0);
  unroll<Taps>(DSPARK_LAMBDA {
    vf factor = splat(scale * powerOf(a, i));
    (i % 2 ? odd : even) = fma(factor, g[i], i % 2 ? odd : even);
  });
  plus = even + odd;
  minus = even - odd;
}

template <int Taps> void filtersOf(const LineFilters &filters) {
  int64_t tap = filters.inputs * kPanelLanes;
  for (int64_t at = 0; at < tap; at += kLanes) {
    vf g[Taps], t[kLinePoints];
    unroll<Taps>(DSPARK_LAMBDA { g[i] = load(filters.w + i * tap + at); });
    t[0] = g[0];
    filterPair(g, 1, -2.0f / 9, t[1], t[2]);
    filterPair(g, 2, 1.0f / 90, t[3], t[4]);
    filterPair(g, 0.5f, 32.0f / 45, t[5], t[6]);
    t[7] = g[Taps - 1];
    unroll<kLinePoints>(DSPARK_LAMBDA { store(filters.to + i * filters.step + at, t[i]); });
  }
}

void lineFilters(const LineFilters &filters) {
  DSPARK_EXPECTS(filters.w && filters.to && filters.step >= filters.inputs * kPanelLanes);
  DSPARK_EXPECTS(filters.taps == 3 || filters.taps == 5 || filters.taps == 7);
  filters.taps == 3   ? filtersOf<3>(filters)
  : filters.taps == 5 ? filtersOf<5>(filters)
                      : filtersOf<7>(filters);
}

template <int Taps> void outputsOf(const LineOutput &tile) {
  constexpr int kOut = kLinePoints + 1 - Taps;
  for (int64_t c = 0; c < tile.columns; c += kLanes) {
    vf m[kLinePoints], y[1][kOut];
    unroll<kLinePoints>(DSPARK_LAMBDA { m[i] = load(tile.products + i * tile.step + c); });
    vf even[3] = {m[1] + m[2], m[3] + m[4], m[5] + m[6]}, odd[3] = {m[1] - m[2], m[3] - m[4], m[5] - m[6]};
    unroll<kOut>(DSPARK_LAMBDA {
      const vf(&sums)[3] = i % 2 ? odd : even;
      vf sum = fma(splat(powerOf(0.5f, i)), sums[2], fma(splat(powerOf(2, i)), sums[1], sums[0]));
      sum = i == 0 ? sum + m[0] : sum;
      y[0][i] = i == kOut - 1 ? sum + m[7] : sum;
    });
    storeOutputs(
        y, tile.bias ? tile.bias + c : nullptr, tile.epilogue,
        {tile.y + c, tile.pixel, tile.count, tile.columns - c, tile.residual ? tile.residual + c : nullptr});
  }
}

void lineOutput(const LineOutput &tile) {
  DSPARK_EXPECTS(tile.products && tile.y && tile.step >= tile.columns);
  DSPARK_EXPECTS(tile.count >= 1 && tile.count <= kLinePoints + 1 - tile.taps);
  tile.taps == 3 ? outputsOf<3>(tile) : tile.taps == 5 ? outputsOf<5>(tile) : outputsOf<7>(tile);
}

} // namespace
} // namespace dspark
