#include "frontends/checkpoint/Rope.h"
#include <algorithm>
#include <cmath>
#include <numbers>

namespace dspark::checkpoint {
namespace {

double frequency(double base, size_t i, int64_t rotated) {
  return std::pow(base, -2.0 * double(i) / double(rotated));
}

// Makes a table by f(i, frequency).
template <typename F> RopeTable tableOf(double base, int64_t rotated, F f) {
  RopeTable table;
  table.inverseFrequencies.resize(size_t(rotated / 2));
  for (size_t i = 0; i < table.inverseFrequencies.size(); ++i)
    table.inverseFrequencies[i] = float(f(double(i), frequency(base, i, rotated)));
  return table;
}

} // namespace

RopeTable plainRope(double base, int64_t rotated, double factor) {
  return tableOf(base, rotated, [&](double, double plain) { return plain / factor; });
}

RopeTable yarnRope(double base, int64_t rotated, const YarnSettings &s) {
  // The pair that turns `turns` times within the original context.
  auto pairOf = [&](double turns) {
    return double(rotated) * std::log(double(s.originalContext) / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(base));
  };
  double low = pairOf(s.betaFast), high = pairOf(s.betaSlow);
  low = std::max(s.isTruncated ? std::floor(low) : low, 0.0);
  high = std::min(s.isTruncated ? std::ceil(high) : high, double(rotated - 1));
  if (low == high)
    high += 0.001; // Hugging Face's guard against division by zero
  RopeTable table = tableOf(base, rotated, [&](double i, double plain) {
    double stretched = std::clamp((i - low) / (high - low), 0.0, 1.0);
    return plain / s.factor * stretched + plain * (1 - stretched);
  });
  table.magnitude = s.magnitude != 0 ? s.magnitude : s.factor > 1 ? 0.1 * std::log(s.factor) + 1 : 1;
  return table;
}

RopeTable llama3Rope(double base, int64_t rotated, const Llama3Settings &s) {
  double context = double(s.originalContext);
  return tableOf(base, rotated, [&](double, double plain) {
    double length = 2 * std::numbers::pi / plain;
    if (length > context / s.lowFactor)
      return plain / s.factor;
    if (length < context / s.highFactor)
      return plain;
    double smooth = (context / length - s.lowFactor) / (s.highFactor - s.lowFactor);
    return (1 - smooth) * plain / s.factor + smooth * plain;
  });
}

void divideFrequencies(RopeTable &table, const std::vector<float> &factors) {
  for (size_t i = 0; i < table.inverseFrequencies.size(); ++i)
    table.inverseFrequencies[i] /= factors[i];
}

} // namespace dspark::checkpoint
