#include "tools/dspark-compile/ByteCalibration.h"

namespace dspark {

StatusOr<std::vector<ByteRange>> observeRanges(Session &observing, Calibration &calibration, size_t values) {
  std::vector<ByteObservation> observations(values);
  for (bool isFirst : {true, false})
    for (size_t set = 0; set < calibration.deciding(); ++set) {
      StatusOr<OutputNumbers> numbers = calibration.run(observing, set);
      if (!numbers.isOk())
        return numbers.status();
      for (size_t i = 0; i < values; ++i) {
        const TensorView &value = observing.output(observing.outputCount() - values + i);
        std::span<const float> elements(value.as<const float>(), size_t(value.elements()));
        isFirst ? observations[i].addExtremes(elements) : observations[i].addElements(elements);
      }
    }
  std::vector<ByteRange> ranges;
  for (const ByteObservation &observation : observations)
    ranges.push_back(observation.isUsable() ? observation.best() : ByteRange());
  return ranges;
}

} // namespace dspark
