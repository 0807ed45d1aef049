// Included by lane_folds*.cpp, each compiled for its ISA level; DSPARK_LANE_FOLDS names the table.
#include "kernels/common/vector_math.h"
#include "kernels/fused/lane_folds.h"

namespace dspark {
namespace {

using namespace simd;

constexpr int kWidth = 2 * kLanes; // = fusedLanes(level)

struct Sum {
  static constexpr float identity = 0;
  static DSPARK_SIMD vf apply(vf acc, vf x) { return acc + x; }
  static DSPARK_SIMD float apply(float acc, float x) { return acc + x; }
};
struct Max {
  static constexpr float identity = -__builtin_inff();
  static DSPARK_SIMD vf apply(vf acc, vf x) { return max(acc, x); }
  static DSPARK_SIMD float apply(float acc, float x) { return acc > x || acc != acc ? acc : x; }
};
struct Min {
  static constexpr float identity = __builtin_inff();
  static DSPARK_SIMD vf apply(vf acc, vf x) { return min(acc, x); }
  static DSPARK_SIMD float apply(float acc, float x) { return acc < x || acc != acc ? acc : x; }
};

template <typename F> void foldLanes(const float *x, int64_t n, float *lanes) {
  vf low = load(lanes), high = load(lanes + kLanes);
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    low = F::apply(low, load(x + i));
    high = F::apply(high, load(x + i + kLanes));
  }
  store(lanes, low);
  store(lanes + kLanes, high);
  for (int64_t lane = 0; i < n; ++i, ++lane)
    lanes[lane] = F::apply(lanes[lane], x[i]);
}

template <typename F> void joinLanes(float *total, float *lanes) {
  for (int half = 0; half < kWidth; half += kLanes) {
    store(total + half, F::apply(load(total + half), load(lanes + half)));
    store(lanes + half, splat(F::identity));
  }
}

template <typename F> float treeOfLanes(const float *lanes) {
  float values[kWidth];
  __builtin_memcpy(values, lanes, sizeof(values));
  for (int half = kWidth / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      values[i] = F::apply(values[i], values[i + half]);
  return values[0];
}

} // namespace

extern const LaneFolds DSPARK_LANE_FOLDS;
constinit const LaneFolds DSPARK_LANE_FOLDS = {
    {foldLanes<Sum>, foldLanes<Sum>, foldLanes<Max>, foldLanes<Min>},
    {joinLanes<Sum>, joinLanes<Sum>, joinLanes<Max>, joinLanes<Min>},
    {treeOfLanes<Sum>, treeOfLanes<Sum>, treeOfLanes<Max>, treeOfLanes<Min>},
};

} // namespace dspark
