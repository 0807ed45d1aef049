// Sequential temperature scaling (DSpark paper, 2607.05147, section 3.3): drafters are too sure of
// themselves, and the scheduler needs probabilities, not an order. One temperature per position, fitted from
// the left on drafts that were verified whole, so that the product of the estimates up to a position says how
// often all of them are accepted. Monotone, so the order of drafts at a position stays.
#pragma once
#include "runtime/base/Status.h"
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dspark::llm {

/// What a drafter estimated and what verification said. All tokens of the draft must have been offered for
/// verification: a record cut short by the scheduler knows nothing of what it left out.
struct CalibrationRecord {
  std::vector<float> confidence; // of each position, in (0, 1)
  int32_t judged = 0;            // Verdict's: less where the sequence ended
  int32_t accepted = 0;
};

class TemperatureScaling {
public:
  /// All temperatures 1.
  TemperatureScaling() = default;

  /// For each position in turn the temperature of 49 between 1/8 and 8 that minimises the expected
  /// calibration error (20 bins of equal width) of the product up to it. A position of fewer than 50 records
  /// takes the temperature before it.
  static TemperatureScaling fit(std::span<const CalibrationRecord> records);

  /// sigmoid(logit(confidence) / T) of the position; those after the last take the last's temperature.
  float calibrated(float confidence, size_t position) const;

  const std::vector<float> &temperatures() const { return values; }

  /// {"temperatures": [...]}. Errors of fromJson: not that, more than 1024, a value outside [1/64, 64].
  std::string toJson() const;
  static StatusOr<TemperatureScaling> fromJson(std::string_view json);

private:
  std::vector<float> values;
};

/// Mean over bins of |mean predicted - share that happened|, weighted by count; 0 without predictions.
double expectedCalibrationError(std::span<const float> predicted, std::span<const uint8_t> happened);

} // namespace dspark::llm
