#include "tools/dspark-compile/PrecisionProbe.h"
#include <algorithm>

namespace dspark {

StatusOr<std::unique_ptr<PrecisionProbe>> PrecisionProbe::create(std::shared_ptr<const Program> program,
                                                                 const CompileReport &report,
                                                                 Calibration &calibration,
                                                                 const std::vector<std::string> &sensitive,
                                                                 const CostModel &model) {
  std::unique_ptr<PrecisionProbe> probe(new PrecisionProbe(calibration));
  probe->program = program;
  probe->flags.resize(report.contractions.size());
  DSPARK_ASSIGN_OR_RETURN(probe->session, Session::create(program));
  DSPARK_ASSIGN_OR_RETURN(probe->found, precisionRegions(*program, report, sensitive));
  probe->meter = std::make_unique<PrecisionMeter>(probe->found, model);
  return probe;
}

StatusOr<OutputNumbers> PrecisionProbe::run(size_t set) {
  return calibration.run(*session, set, flags.empty() ? nullptr : &flags);
}

// The last output: sums of squares of the differences and of the f32 results.
void PrecisionProbe::takeErrors() {
  auto *sums = session->output(session->outputCount() - 1).as<const float>();
  for (PrecisionRegion &region : found)
    for (PrecisionVariant &variant : region.variants)
      if (variant.isStatic())
        variant.noise += double(sums[2 * region.contraction]);
}

Status PrecisionProbe::measure() {
  meter->setMode(PrecisionMeter::Mode::Measure);
  std::fill(flags.begin(), flags.end(), 0);
  for (size_t set = 0; set < calibration.sets(); ++set) {
    bool decides = set < calibration.deciding();
    session->setObserver(decides ? meter.get() : nullptr);
    StatusOr<OutputNumbers> numbers = run(set);
    session->setObserver(nullptr);
    if (!numbers.isOk())
      return numbers.status();
    outputs.push_back(std::move(*numbers));
    if (decides && !flags.empty())
      takeErrors();
  }
  for (PrecisionRegion &region : found)
    region.finish(double(calibration.deciding()));
  return Status::ok();
}

StatusOr<double> PrecisionProbe::errorOf(ErrorMetric metric, const std::vector<int> &choices, size_t first,
                                         size_t last) {
  std::fill(flags.begin(), flags.end(), 0);
  for (size_t r = 0; r < found.size(); ++r)
    if (choices[r] >= 0 && found[r].variants[size_t(choices[r])].isStatic())
      flags[size_t(found[r].contraction)] = 1;
  meter->setMode(PrecisionMeter::Mode::Simulate, choices);
  session->setObserver(meter.get());
  std::vector<OutputNumbers> numbers, wanted;
  Status status = Status::ok();
  for (size_t set = first; set < last && status.isOk(); ++set) {
    StatusOr<OutputNumbers> one = run(set);
    status = one.status();
    if (one.isOk())
      numbers.push_back(std::move(*one));
    wanted.push_back(outputs[set]);
  }
  session->setObserver(nullptr);
  if (!status.isOk())
    return status;
  return outputError(metric, numbers, wanted);
}

} // namespace dspark
