#include "tools/dspark-compile/PlacementSearch.h"
#include "runtime/format/PlanRewrite.h"
#include <algorithm>
#include <chrono>

namespace dspark {
namespace {

// Steps are measured for so long, but in three runs at least.
constexpr double kMeasureSeconds = 0.3;
constexpr int kLeastRuns = 3;

// Of a step whose precision nobody chose: that of its packed weights, else of its result.
std::string precisionOf(const BoundStep &step) {
  Attrs attrs(step.step->attrs);
  std::string layout(attrs.s("packed", ""));
  if (!layout.empty() && layout != "panel16")
    return layout + (attrs.s("arithmetic", "").empty() ? "" : "/" + std::string(attrs.s("arithmetic", "")));
  return std::string(step.results.empty() ? "" : dtypeName(step.results[0].type));
}

} // namespace

StatusOr<PlanDecisions> PlacementSearch::run(const std::string &plan, const PlacementRequest &request,
                                             const MachineProfile &machine) {
  PlacementSearch search(request, machine);
  if (!request.devices.empty())
    DSPARK_RETURN_IF_ERROR(rewritePlan(plan, [&](fb::PlanT &edited) {
      edited.devices.clear();
      edited.regions.clear();
      edited.sizes.clear();
      for (const DeviceSpec &spec : request.devices) {
        edited.devices.push_back(std::make_unique<fb::DeviceT>());
        edited.devices.back()->name = spec.name;
      }
    }));
  DSPARK_RETURN_IF_ERROR(search.open(plan));
  DSPARK_RETURN_IF_ERROR(search.runAll());
  for (size_t size = search.sizes; size-- > 0;)
    DSPARK_RETURN_IF_ERROR(search.decideFor(size));
  DSPARK_RETURN_IF_ERROR(search.validateChoice());
  search.explain();
  search.merge();
  if (!request.devices.empty())
    DSPARK_RETURN_IF_ERROR(search.write(plan));
  return std::move(search.decisions);
}

Status PlacementSearch::open(const std::string &plan) {
  DSPARK_ASSIGN_OR_RETURN(auto file, PlanFile::open(plan));
  DSPARK_ASSIGN_OR_RETURN(program, Program::create(std::move(file)));
  std::string reason = reasonAgainstDevices(*program);
  if (!request.devices.empty() && !reason.empty())
    return Status(Code::Unsupported, "--device: " + reason);
  SessionOptions options;
  options.devices = request.devices;
  options.threads = request.threads;
  DSPARK_ASSIGN_OR_RETURN(session, Session::create(program, options));
  DSPARK_ASSIGN_OR_RETURN(calibration, Calibration::create(*program, request.calibration));
  for (size_t d = 1; d < program->devices().size(); ++d) {
    Device &device = *session->devices().device(int(d));
    DSPARK_ASSIGN_OR_RETURN(dspark_device_facts facts, device.facts());
    decisions.devices.push_back({device.name(), device.kind(), double(facts.memory), 0, 0});
    limits.push_back(double(facts.memory_left));
  }
  for (const auto &[name, values] : request.calibration.dims)
    if (calibration.isSynthetic() && !request.devices.empty())
      sizes = std::min(std::max(sizes, values.size()), kMaxPlanSizes);
  placements.resize(sizes);
  decisions.threads = session->threads();
  decisions.profile = machine.source;
  return Status::ok();
}

Status PlacementSearch::decideFor(size_t wanted) {
  size = wanted;
  decisions.steps.clear();
  decisions.transfers.clear();
  profile.clear();
  unitSteps.clear();
  refusals.clear();
  DSPARK_RETURN_IF_ERROR(measure());
  describeAll();
  DSPARK_RETURN_IF_ERROR(addVariants());
  DSPARK_RETURN_IF_ERROR(force());
  DSPARK_RETURN_IF_ERROR(validateDevices());
  DSPARK_RETURN_IF_ERROR(solve());
  placements[size] = placement();
  if (size > 0)
    decisions.sizes.insert(decisions.sizes.begin(),
                           {dimsOf(size), {}, evaluateAssignment(problem, chosen).seconds});
  return Status::ok();
}

std::map<std::string, int64_t> PlacementSearch::dimsOf(size_t wanted) const {
  std::map<std::string, int64_t> dims;
  for (const auto &[name, values] : request.calibration.dims)
    dims[name] = values[wanted % values.size()];
  return dims;
}

// The CPU's results.
Status PlacementSearch::runAll() {
  session->place({});
  for (size_t set = 0; set < calibration.sets() && !request.devices.empty(); ++set) {
    DSPARK_ASSIGN_OR_RETURN(OutputNumbers numbers, calibration.run(*session, set));
    expected.push_back(std::move(numbers));
  }
  return Status::ok();
}

// The CPU's times; sets take sizes by turns.
Status PlacementSearch::measure() {
  session->place({});
  DSPARK_RETURN_IF_ERROR(calibration.run(*session, size).status());
  session->setProfile(&profile);
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kMeasureSeconds);
  Status status;
  for (int i = 0; status.isOk() && (i < kLeastRuns || std::chrono::steady_clock::now() < end); ++i)
    status = calibration.run(*session, size).status();
  session->setProfile(nullptr);
  DSPARK_RETURN_IF_ERROR(status);
  DSPARK_ASSIGN_OR_RETURN(bound, bind());
  return Status::ok();
}

StatusOr<BoundPlan> PlacementSearch::bind() { return calibration.bind(*session, size, decisions.shapes); }

StepDecision PlacementSearch::describe(const BoundStep &step, double footprint) const {
  StepDecision decision;
  decision.step = bodyIndex(*program, *step.step);
  decision.nodes = step.step->location;
  decision.op = step.step->opName;
  decision.type = step.results.empty() ? "" : step.results[0].str();
  decision.precision = precisionOf(step);
  decision.kernel = step.kernel->name;
  decision.predicted = machine.model.predict(step.cost, footprint, session->threads());
  if (auto line = profile.lines.find({step.step, step.kernel}); line != profile.lines.end())
    decision.measured = line->second.least;
  for (int value : step.step->inputs)
    if (value >= 0 && program->values()[size_t(value)].kind == fb::ValueKind::Constant)
      decision.bytes += double(program->values()[size_t(value)].bytes.size());
  return decision;
}

// One unit per kernel call of the body. Views pass on who made what they are views of.
void PlacementSearch::describeAll() {
  double footprint = bound.constantBytes + double(bound.lowerBound);
  std::map<const StepInfo *, const BoundStep *> calls;
  for (const BoundStep &step : bound.steps)
    if (step.step->kind == fb::StepKind::Kernel)
      calls[step.step] = &step;
  const std::vector<StepInfo> &steps = program->body().steps;
  std::vector<int> unitOfStep(steps.size()), maker(program->values().size(), -1);
  for (size_t i = 0; i < steps.size(); ++i) {
    auto call = calls.find(&steps[i]);
    if (call == calls.end()) {
      if (isView(steps[i]))
        maker[size_t(steps[i].outputs[0])] = maker[size_t(steps[i].inputs[0])];
      continue;
    }
    StepDecision &decision = decisions.steps.emplace_back(describe(*call->second, footprint));
    for (int value : steps[i].inputs)
      if (value >= 0 && maker[size_t(value)] >= 0)
        decision.inputs.push_back(maker[size_t(value)]);
    for (int value : steps[i].outputs)
      if (value >= 0)
        maker[size_t(value)] = int(decisions.steps.size()) - 1;
    unitSteps.push_back(call->second);
    unitOfStep[i] = int(decisions.steps.size());
  }
  problem = placementProblem(*program, session->devices(), bound, unitOfStep, int(decisions.steps.size()));
}

// What is measured counts, else what is predicted.
Status PlacementSearch::addVariants() {
  for (size_t u = 0; u < decisions.steps.size(); ++u) {
    StepDecision &decision = decisions.steps[u];
    const BoundStep &step = *unitSteps[u];
    std::vector<RegionVariant> &variants = problem.regions[u + 1].variants;
    variants.push_back({0, decision.measured > 0 ? decision.measured : decision.predicted, 0, 0});
    std::vector<std::string> &reasons = refusals.emplace_back(program->devices().size());
    DeviceStep call(step.step->opName, step.record->call, step.record->work, step.constants);
    bool isFixed = bound.endsAt == step.step; // only a run tells what it makes
    for (size_t d = 1; d < program->devices().size(); ++d) {
      StatusOr<double> seconds = isFixed ? Status(Code::Unsupported, "its results' dims depend on data")
                                         : session->devices().device(int(d))->estimate(call);
      if (seconds.isOk())
        variants.push_back({int(d), *seconds, 0, decision.bytes});
      else
        reasons[d] = seconds.status().message();
    }
    // The plan keeps the fastest ones.
    std::sort(variants.begin() + 1, variants.end(),
              [](const RegionVariant &a, const RegionVariant &b) { return a.seconds < b.seconds; });
    while (variants.size() > kMaxRegionVariants) {
      reasons[size_t(variants.back().device)] = "slower than three other devices";
      variants.pop_back();
    }
  }
  return Status::ok();
}

Status PlacementSearch::force() {
  for (size_t u = 0; u < decisions.steps.size(); ++u) {
    auto rule = request.forced.find(decisions.steps[u].step);
    if (rule == request.forced.end())
      continue;
    auto name = std::find(program->devices().begin(), program->devices().end(), rule->second);
    if (name == program->devices().end())
      return Status(Code::NotFound, "node '" + decisions.steps[u].nodes + "' shall run on device '" +
                                        rule->second + "', which no --device gives");
    int device = int(name - program->devices().begin());
    std::vector<RegionVariant> &variants = problem.regions[u + 1].variants;
    auto wanted =
        std::find_if(variants.begin(), variants.end(), [&](auto &one) { return one.device == device; });
    if (wanted == variants.end())
      return Status(Code::Unsupported, "node '" + decisions.steps[u].nodes + "' shall run on device '" +
                                           rule->second + "', which cannot: " + refusals[u][size_t(device)]);
    variants = {*wanted};
  }
  return Status::ok();
}

int PlacementSearch::deviceOf(size_t unit) const {
  return problem.regions[unit + 1].variants[size_t(chosen[unit + 1])].device;
}

Placement PlacementSearch::placement() const {
  Placement placement(program->body().steps.size());
  for (size_t u = 0; u < decisions.steps.size(); ++u)
    placement[size_t(decisions.steps[u].step)] = uint8_t(deviceOf(u));
  return placement;
}

// Tensors need a device's memory, too, and how much depends on what runs there: where it is too little, less
// is left for weights.
Status PlacementSearch::solve() {
  for (double reserve = 0;;) {
    for (size_t d = 0; d < limits.size(); ++d)
      problem.deviceBytes[d + 1] = std::max(0.0, limits[d] - reserve);
    chosen = solveAssignment(problem).variants;
    session->place(placement());
    StatusOr<BoundPlan> placed = bind();
    if (placed.isOk()) {
      describeTransfers(*placed);
      return Status::ok();
    }
    bool isLast = std::all_of(limits.begin(), limits.end(), [&](double limit) { return reserve > limit; });
    if (placed.status().code() != Code::OutOfMemory || isLast)
      return placed.status();
    lowerLimits();
    double least = *std::min_element(limits.begin(), limits.end());
    reserve = reserve == 0 ? std::max(least / 64, 4096.0) : reserve * 1.5;
  }
}

// What was asked for is more than there is, whatever a device says.
void PlacementSearch::lowerLimits() {
  std::vector<double> asked(limits.size());
  for (size_t u = 0; u < decisions.steps.size(); ++u)
    if (int device = deviceOf(u); device > 0)
      asked[size_t(device) - 1] += decisions.steps[u].bytes + unitSteps[u]->bytes;
  for (size_t d = 0; d < limits.size(); ++d)
    if (asked[d] > 0)
      limits[d] = std::min(limits[d], asked[d]);
}

void PlacementSearch::describeTransfers(const BoundPlan &placed) {
  for (const BoundTransfer &transfer : placed.transfers) {
    const TransferCost &link = problem.transfers[size_t(transfer.from * problem.devices + transfer.to)];
    std::string_view name = program->values()[size_t(transfer.value)].name;
    decisions.transfers.push_back({name.empty() ? "%" + std::to_string(transfer.value) : std::string(name),
                                   program->devices()[size_t(transfer.from)],
                                   program->devices()[size_t(transfer.to)], double(transfer.bytes),
                                   link.latency + double(transfer.bytes) * link.perByte});
  }
  for (size_t d = 1; d < placed.deviceBytes.size() && d <= decisions.devices.size(); ++d)
    decisions.devices[d - 1].tensors = double(placed.deviceBytes[d]);
}

} // namespace dspark
