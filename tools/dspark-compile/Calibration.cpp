#include "tools/dspark-compile/Calibration.h"
#include "tools/dspark-compile/CalibrationFiles.h"
#include <algorithm>

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
  int64_t width = value.tensor.rank > 0 ? value.tensor.dims[value.tensor.rank - 1] : 1;
  numbers.push_back({{data, data + value.tensor.elements()}, std::max<int64_t>(width, 1)});
}

} // namespace

StatusOr<Calibration> Calibration::create(const Program &program, const CalibrationRequest &request) {
  Calibration calibration;
  calibration.synthetic = request.files.empty();
  calibration.outputs = program.outputs().size();
  DSPARK_ASSIGN_OR_RETURN(std::vector<CalibrationSet> given, readCalibrationSets(program, request.files));
  size_t sizes = 1;
  for (const auto &[name, values] : request.dims)
    sizes = std::max(sizes, values.size());
  size_t count = calibration.synthetic ? kRandomSets * sizes : given.size();
  for (size_t i = 0; i < count; ++i) {
    InputRequest one;
    for (const auto &[name, values] : request.dims)
      one.dims[name] = values[i % values.size()];
    one.seed = i + 1;
    one.source = calibration.synthetic ? "random inputs" : given[i].source;
    if (!calibration.synthetic)
      one.tensors = std::move(given[i].tensors);
    DSPARK_ASSIGN_OR_RETURN(Inputs set, gatherInputs(program, one));
    calibration.inputs.push_back(std::move(set));
    calibration.sources.push_back(one.source);
  }
  calibration.decides = count > 1 ? count - std::max<size_t>(1, count / 4) : count;
  return calibration;
}

StatusOr<BoundPlan> Calibration::bind(Session &session, size_t set, std::string &shapes) {
  std::deque<std::vector<BorrowedValue>> nodes;
  std::vector<BorrowedValue> lent;
  shapes.clear();
  for (size_t i = 0; i < inputs[set].values.size(); ++i) {
    HostValue &value = inputs[set].values[i];
    std::string_view name = session.program().values()[size_t(session.program().inputs()[i])].name;
    shapes += (i ? ", " : "") + std::string(name) + " " + (value.isList ? "list" : value.tensor.str());
    lent.push_back(lend(value, nodes));
  }
  return session.bind(std::span<const BorrowedValue>(lent));
}

StatusOr<OutputNumbers> Calibration::run(Session &session, size_t set, std::vector<uint8_t> *flags) {
  std::deque<std::vector<BorrowedValue>> nodes;
  std::vector<BorrowedValue> lent;
  for (HostValue &value : inputs[set].values)
    lent.push_back(lend(value, nodes));
  int64_t count = flags ? int64_t(flags->size()) : 0;
  if (flags)
    lent.push_back({{flags->data(), DType::Bool, 1, &count}});
  if (Status status = session.run(lent); !status.isOk())
    return Status(status.code(), sources[set] + ": " + status.message());
  OutputNumbers numbers;
  for (size_t k = 0; k < outputs; ++k)
    takeNumbers(session.outputValue(k), numbers);
  return numbers;
}

} // namespace dspark
