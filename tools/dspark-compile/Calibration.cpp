#include "tools/dspark-compile/Calibration.h"
#include <algorithm>
#include <cmath>

namespace dspark {
namespace {

constexpr size_t kRandomSets = 4;

void takeNumbers(const OutputValue &value, OutputNumbers &numbers) {
  if (value.isList) {
    for (const OutputValue &item : value.items)
      takeNumbers(item, numbers);
    return;
  }
  if (value.tensor.type != DType::F32)
    return;
  auto *data = value.tensor.as<const float>();
  numbers.emplace_back(data, data + value.tensor.elements());
}

} // namespace

StatusOr<Calibration> Calibration::create(const Program &program, const CalibrationRequest &request) {
  Calibration calibration;
  calibration.synthetic = request.files.empty();
  size_t count = calibration.synthetic ? kRandomSets : request.files.size();
  for (size_t i = 0; i < count; ++i) {
    InputRequest one;
    one.dims = request.dims;
    one.seed = i + 1;
    if (!calibration.synthetic)
      one.archive = request.files[i];
    StatusOr<Inputs> set = gatherInputs(program, one);
    if (!set.isOk())
      return set.status();
    calibration.inputs.push_back(std::move(*set));
  }
  calibration.decides = count > 1 ? count - std::max<size_t>(1, count / 4) : count;
  return calibration;
}

StatusOr<OutputNumbers> Calibration::run(Session &session, size_t set) {
  std::deque<std::vector<BorrowedValue>> nodes;
  std::vector<BorrowedValue> lent;
  for (HostValue &value : inputs[set].values)
    lent.push_back(lend(value, nodes));
  DSPARK_RETURN_IF_ERROR(session.run(lent));
  OutputNumbers numbers;
  for (size_t k = 0; k < session.outputCount(); ++k)
    takeNumbers(session.outputValue(k), numbers);
  return numbers;
}

double relativeError(const std::vector<OutputNumbers> &found, const std::vector<OutputNumbers> &expected) {
  std::vector<double> noise, signal;
  for (size_t set = 0; set < expected.size(); ++set) {
    if (found[set].size() != expected[set].size())
      return INFINITY;
    noise.resize(std::max(noise.size(), expected[set].size()));
    signal.resize(noise.size());
    for (size_t k = 0; k < expected[set].size(); ++k) {
      if (found[set][k].size() != expected[set][k].size())
        return INFINITY;
      for (size_t i = 0; i < expected[set][k].size(); ++i) {
        double a = found[set][k][i], b = expected[set][k][i];
        if (std::isfinite(b) && std::isfinite(a)) {
          noise[k] += (a - b) * (a - b);
          signal[k] += b * b;
        } else if (!(a == b || (std::isnan(a) && std::isnan(b)))) {
          return INFINITY;
        }
      }
    }
  }
  double worst = 0;
  for (size_t k = 0; k < noise.size(); ++k)
    if (noise[k] > 0)
      worst = std::max(worst, signal[k] > 0 ? std::sqrt(noise[k] / signal[k]) : INFINITY);
  return worst;
}

} // namespace dspark
