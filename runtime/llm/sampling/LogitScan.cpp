#include "runtime/llm/sampling/LogitScan.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace dspark::llm {
namespace {

constexpr int kLanes = 16;
constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr float kLargestFinite = std::numeric_limits<float>::max();

// The maximum of kBlock logits. Lanes of `bad` become non-zero where a value is NaN or plus infinity.
float blockMaximum(const float *x, uint32_t *bad) {
  float best[kLanes];
  std::fill_n(best, kLanes, kLowest);
  for (int64_t i = 0; i < LogitScan::kBlock; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) {
      const float value = x[i + lane];
      best[lane] = value > best[lane] ? value : best[lane];
      bad[lane] |= value <= kLargestFinite ? 0u : ~0u;
    }
  return *std::max_element(best, best + kLanes);
}

Status badLogit(std::span<const float> row) {
  for (size_t i = 0; i < row.size(); ++i)
    if (!(row[i] <= kLargestFinite))
      return {Code::Internal, "the model's logit of token " + std::to_string(i) + " is " +
                                  (std::isnan(row[i]) ? "not a number" : "infinite")};
  return {Code::Internal, "the model rules out every one of its " + std::to_string(row.size()) + " tokens"};
}

} // namespace

Status LogitScan::read(std::span<const float> logits) {
  row = logits;
  const int64_t size = int64_t(row.size()), whole = size / kBlock;
  maxima.resize(size_t((size + kBlock - 1) / kBlock));
  uint32_t bad[kLanes] = {};
  for (int64_t block = 0; block < whole; ++block)
    maxima[size_t(block)] = blockMaximum(row.data() + block * kBlock, bad);
  if (whole * kBlock < size) {
    float tail[kBlock];
    std::fill_n(tail, kBlock, kLowest);
    std::copy(row.begin() + whole * kBlock, row.end(), tail);
    maxima[size_t(whole)] = blockMaximum(tail, bad);
  }
  const bool anyBad = std::any_of(bad, bad + kLanes, [](uint32_t lane) { return lane != 0; });
  most = maxima.empty() ? kLowest : *std::max_element(maxima.begin(), maxima.end());
  return anyBad || most == kLowest ? badLogit(row) : Status::ok();
}

int32_t LogitScan::argmax() const {
  const auto block = std::find(maxima.begin(), maxima.end(), most) - maxima.begin();
  return int32_t(std::find(row.begin() + block * kBlock, row.end(), most) - row.begin());
}

// At least k logits reach the k-th largest of the blocks' maxima, so the k largest of all do: only blocks
// whose maximum reaches it are looked into, k and few more.
void LogitScan::top(int64_t k, std::vector<ScoredToken> &out) {
  float bound = kLowest;
  if (k <= int64_t(maxima.size())) {
    scratch = maxima;
    std::nth_element(scratch.begin(), scratch.begin() + (k - 1), scratch.end(), std::greater<float>());
    bound = scratch[size_t(k - 1)];
  }
  out.clear();
  for (size_t block = 0; block < maxima.size(); ++block) {
    if (maxima[block] < bound)
      continue;
    const size_t end = std::min(row.size(), (block + 1) * size_t(kBlock));
    for (size_t i = block * size_t(kBlock); i < end; ++i)
      if (row[i] >= bound && row[i] > kLowest)
        out.push_back({int32_t(i), row[i]});
  }
  if (int64_t(out.size()) <= k)
    return;
  std::nth_element(out.begin(), out.begin() + k, out.end(), [](const ScoredToken &a, const ScoredToken &b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  });
  out.resize(size_t(k));
}

// The sum of x / ln 2 and 1.5 * 2^23 has the nearest integer to x / ln 2 in its low bits. |r| <= 0.35, so the
// series without r^8 / 8! errs by 5e-9; the rest of the bound is the rounding of its last steps.
float expNegative(float x) {
  constexpr float kLog2E = 1.44269504f, kRound = 12582912.f, kLn2High = 0.693145752f,
                  kLn2Low = 1.42860677e-6f;
  const float clamped = x < -87.f ? -87.f : x;
  const float shifted = clamped * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * kLn2High) - n * kLn2Low;
  float p = 1.f / 5040;
  p = p * r + 1.f / 720;
  p = p * r + 1.f / 120;
  p = p * r + 1.f / 24;
  p = p * r + 1.f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.f;
  p = p * r + 1.f;
  const uint32_t exponent = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound);
  const float scaled = p * std::bit_cast<float>((exponent + 127u) << 23);
  return x < -87.f ? 0.f : scaled;
}

double expWeights(std::span<const float> logits, float largest, float temperature, std::span<float> weights) {
  const float scale = 1 / temperature;
  double sum = 0;
  for (size_t begin = 0; begin < logits.size(); begin += LogitScan::kBlock) {
    const size_t end = std::min(logits.size(), begin + size_t(LogitScan::kBlock));
    float lanes[kLanes] = {};
    size_t i = begin;
    for (; i + kLanes <= end; i += kLanes)
      for (int lane = 0; lane < kLanes; ++lane) {
        const float weight = expNegative((logits[i + size_t(lane)] - largest) * scale);
        weights[i + size_t(lane)] = weight;
        lanes[lane] += weight;
      }
    for (; i < end; ++i)
      lanes[0] += weights[i] = expNegative((logits[i] - largest) * scale);
    for (float lane : lanes)
      sum += double(lane);
  }
  return sum;
}

} // namespace dspark::llm
