#include "tools/dspark-compile/PlacementSearch.h"
#include "runtime/format/PlanRewrite.h"
#include <algorithm>
#include <chrono>

namespace dspark {
namespace {

// Steps are measured for so long, but in three runs at least.
constexpr double kMeasureSeconds = 0.3;
constexpr int kLeastRuns = 3;

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
  addVariants();
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
  measuredRuns = 0;
  for (; status.isOk() && (measuredRuns < kLeastRuns || std::chrono::steady_clock::now() < end);
       ++measuredRuns)
    status = calibration.run(*session, size).status();
  session->setProfile(nullptr);
  DSPARK_RETURN_IF_ERROR(status);
  DSPARK_ASSIGN_OR_RETURN(bound, bind());
  return Status::ok();
}

StatusOr<BoundPlan> PlacementSearch::bind() { return calibration.bind(*session, size, decisions.shapes); }

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
