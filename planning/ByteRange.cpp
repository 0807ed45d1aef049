#include "planning/ByteRange.h"
#include <algorithm>
#include <cmath>

namespace dspark {
namespace {

constexpr size_t kBins = 2048;
// Ends that are tried, as shares of the extremes. Below a quarter clipping always loses more than it gains: a
// quarter of the range has a sixteenth of the rounding error, which less than one element in 1000 at the end
// outweighs.
constexpr float kShares[] = {1.0f, 0.9f, 0.8f, 0.7f, 0.6f, 0.5f, 0.4f, 0.32f, 0.25f};

ByteRange rangeOf(float low, float high) {
  ByteRange range;
  range.scale = std::max((high - low) / 255, 1e-30f);
  if (!std::isfinite(range.scale))
    range.scale = high / 255 - low / 255;
  range.zero = uint8_t(std::clamp(std::nearbyint(-low / range.scale), 0.0f, 255.0f));
  return range;
}

} // namespace

void ByteObservation::addExtremes(std::span<const float> elements) {
  float least = low, most = high;
  bool finite = true;
  for (float x : elements) {
    finite &= std::isfinite(x);
    least = x < least ? x : least;
    most = x > most ? x : most;
  }
  isFinite &= finite;
  low = least;
  high = most;
  count += elements.size();
}

void ByteObservation::addElements(std::span<const float> elements) {
  if (!isUsable() || high == low)
    return;
  bins.resize(kBins);
  float perBin = float(kBins) / (high - low);
  for (float x : elements) {
    float at = (x - low) * perBin;
    bins[at < float(kBins - 1) ? size_t(std::max(at, 0.0f)) : kBins - 1] += 1; // NaN: the last
  }
}

// Elements inside are off by a uniform part of a step, those outside by their distance.
double ByteObservation::squaredError(float first, float last) const {
  double step = (double(last) - double(first)) / 255, width = (double(high) - double(low)) / kBins;
  double sum = 0;
  for (size_t i = 0; i < kBins; ++i) {
    double x = double(low) + (double(i) + 0.5) * width;
    double outside = std::max({double(first) - x, x - double(last), 0.0});
    sum += double(bins[i]) * (outside > 0 ? outside * outside : step * step / 12);
  }
  return sum;
}

ByteRange ByteObservation::widest() const { return rangeOf(low, high); }

ByteRange ByteObservation::best() const {
  if (bins.empty())
    return widest();
  float bestLow = low, bestHigh = high;
  double least = INFINITY;
  for (float lower : kShares)
    for (float upper : kShares)
      if (double error = squaredError(low * lower, high * upper); error < least) {
        least = error;
        bestLow = low * lower;
        bestHigh = high * upper;
      }
  return rangeOf(bestLow, bestHigh);
}

} // namespace dspark
