#include "runtime/llm/speculation/TemperatureScaling.h"
#include "runtime/llm/speculation/Logistic.h"
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace dspark::llm {
namespace {

constexpr size_t kBins = 20;
constexpr int kGridHalf = 24; // temperatures on either side of 1, a factor 8^(1/24) = 1.09 apart
constexpr size_t kLeastRecords = 50;

/// The records that know whether their first k + 1 drafts were all accepted, with the survival up to k.
struct Known {
  std::vector<float> logits, survival; // logit of position k; calibrated product of those before
  std::vector<uint8_t> happened;
};

Known knownAt(size_t k, std::span<const CalibrationRecord> records, std::span<const float> survival) {
  Known known;
  for (size_t i = 0; i < records.size(); ++i) {
    const CalibrationRecord &record = records[i];
    const bool isRejected = record.judged > record.accepted;
    if (k >= record.confidence.size() || (int32_t(k) >= record.judged && !isRejected))
      continue;
    known.logits.push_back(logit(record.confidence[k]));
    known.survival.push_back(survival[i]);
    known.happened.push_back(record.accepted > int32_t(k));
  }
  return known;
}

float bestTemperature(const Known &known) {
  float best = 1;
  double least = 2; // above any error
  std::vector<float> predicted(known.logits.size());
  for (int step = 0; step <= 2 * kGridHalf; ++step) { // from 1 outwards: ties go to the nearest to 1
    const int exponent = step % 2 ? (step + 1) / 2 : -step / 2;
    const float temperature = std::pow(8.0f, float(exponent) / kGridHalf);
    for (size_t i = 0; i < predicted.size(); ++i)
      predicted[i] = known.survival[i] * sigmoid(known.logits[i] / temperature);
    const double error = expectedCalibrationError(predicted, known.happened);
    if (error < least) {
      least = error;
      best = temperature;
    }
  }
  return best;
}

} // namespace

double expectedCalibrationError(std::span<const float> predicted, std::span<const uint8_t> happened) {
  std::array<double, kBins> difference{};
  for (size_t i = 0; i < predicted.size(); ++i) {
    const size_t bin = std::min(size_t(predicted[i] * kBins), kBins - 1);
    difference[bin] += double(predicted[i]) - happened[i];
  }
  double sum = 0;
  for (double d : difference)
    sum += std::abs(d);
  return predicted.empty() ? 0 : sum / double(predicted.size());
}

TemperatureScaling TemperatureScaling::fit(std::span<const CalibrationRecord> records) {
  size_t positions = 0;
  for (const CalibrationRecord &record : records)
    positions = std::max(positions, record.confidence.size());
  TemperatureScaling scaling;
  std::vector<float> survival(records.size(), 1.0f);
  for (size_t k = 0; k < positions; ++k) {
    const Known known = knownAt(k, records, survival);
    const float before = k ? scaling.values.back() : 1.0f;
    scaling.values.push_back(known.logits.size() < kLeastRecords ? before : bestTemperature(known));
    for (size_t i = 0; i < records.size(); ++i)
      if (k < records[i].confidence.size())
        survival[i] *= scaling.calibrated(records[i].confidence[k], k);
  }
  return scaling;
}

float TemperatureScaling::calibrated(float confidence, size_t position) const {
  if (values.empty())
    return confidence;
  return sigmoid(logit(confidence) / values[std::min(position, values.size() - 1)]);
}

std::string TemperatureScaling::toJson() const { return nlohmann::json{{"temperatures", values}}.dump(); }

StatusOr<TemperatureScaling> TemperatureScaling::fromJson(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("temperatures") || !json["temperatures"].is_array() ||
      json["temperatures"].size() > 1024)
    return corruptFile("temperatures of drafts are an object with an array \"temperatures\" of up to 1024");
  TemperatureScaling scaling;
  for (const nlohmann::json &value : json["temperatures"]) {
    if (!value.is_number() || !(value.get<double>() >= 1.0 / 64 && value.get<double>() <= 64))
      return corruptFile("temperature " + std::to_string(scaling.values.size()) +
                         " of drafts: expected a number from 1/64 to 64, found " + value.dump());
    scaling.values.push_back(value.get<float>());
  }
  return scaling;
}

} // namespace dspark::llm
