#include "bench/devices/adaptation/Machine.h"
#include "devices/stub/control.h"
#include "planning/CostFeatures.h"
#include "planning/MachineProfile.h"
#include "tools/dspark-rt/OptionTexts.h"
#include <algorithm>
#include <cmath>
#include <dlfcn.h>
#include <numeric>

namespace dspark::bench {
namespace {

constexpr double kWithin = 1e-4; // of the outputs: another order of sums
constexpr int kFaultWithin = 20; // launches

// The functions of control.h in the library that the session has opened.
class Control {
public:
  Status open(const std::string &library) {
    void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_NOLOAD);
    setFaultsIn =
        handle ? reinterpret_cast<int (*)(const char *)>(dlsym(handle, "dspark_stub_set_faults")) : nullptr;
    secondsIn = handle ? reinterpret_cast<double (*)()>(dlsym(handle, "dspark_stub_seconds")) : nullptr;
    return setFaultsIn && secondsIn ? Status::ok() : invalidArgument(library + ": is not the stub");
  }
  void setFaults(const std::string &faults) { setFaultsIn(faults.c_str()); }
  double seconds() { return secondsIn(); }

private:
  int (*setFaultsIn)(const char *) = nullptr;
  double (*secondsIn)() = nullptr;
} control;

std::vector<float> outputsOf(const Session &session) {
  std::vector<float> all;
  for (size_t k = 0; k < session.outputCount(); ++k)
    if (const TensorView &view = session.output(k); view.type == DType::F32)
      all.insert(all.end(), view.as<float>(), view.as<float>() + view.elements());
  return all;
}

double apart(const std::vector<float> &a, const std::vector<float> &b) {
  double noise = 0, signal = 0;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    noise += std::pow(double(a[i]) - double(b[i]), 2);
    signal += std::pow(double(b[i]), 2);
  }
  return a.size() != b.size() ? INFINITY : noise == 0 ? 0 : std::sqrt(noise / signal);
}

// What the device does of a plan, copies included.
double deviceSeconds(const AssignmentProblem &problem, const std::vector<int> &variants) {
  AssignmentProblem device = problem;
  device.overlaps = false; // a sum
  for (AssignedRegion &region : device.regions)
    for (RegionVariant &variant : region.variants)
      variant.seconds = placeOf(problem, variant.device) == 0 ? 0 : variant.seconds;
  return evaluateAssignment(device, variants).seconds;
}

// What the CPU takes in virtual time, as a tracer counts it (runtime/executor/TracerRecords.cpp).
void takeVirtualTimes(const Program &program, const BoundPlan &bound, const RegionProblem &regions,
                      int threads, AssignmentProblem &problem) {
  auto isCpu = [&](const RegionVariant &variant) { return placeOf(problem, variant.device) == 0; };
  for (AssignedRegion &region : problem.regions)
    for (RegionVariant &variant : region.variants)
      variant.seconds = isCpu(variant) ? 0 : variant.seconds;
  for (const BoundStep &step : bound.steps) {
    int index = bodyIndex(program, *step.step), region = index < 0 ? -1 : program.regionOf(size_t(index));
    if (region < 0)
      continue;
    CostFeatures cost = costFeatures(*step.kernel, step.record->call, step.record->work, 0);
    for (RegionVariant &variant : problem.regions[size_t(region) + 1].variants) {
      bool isParallel = regions.isAllThreads(variant.device) && !step.record->isSmall;
      if (isCpu(variant))
        variant.seconds +=
            MachineProfile::generic().model.predict(cost, step.record->work.bytes, isParallel ? threads : 1);
    }
  }
}

} // namespace

StatusOr<std::unique_ptr<Machine>> Machine::create(const MachineOptions &options) {
  std::unique_ptr<Machine> machine(new Machine(options));
  DSPARK_RETURN_IF_ERROR(machine->open());
  DSPARK_RETURN_IF_ERROR(machine->learnSizes());
  machine->enter(State());
  return machine;
}

Status Machine::open() {
  DSPARK_ASSIGN_OR_RETURN(auto file, PlanFile::open(options.plan));
  DSPARK_ASSIGN_OR_RETURN(program, Program::create(std::move(file)));
  SessionOptions session;
  session.threads = options.threads;
  session.adapt = options.adapts;
  session.virtualTime = true;
  session.learned = options.learned;
  DSPARK_RETURN_IF_ERROR(parseDevices({options.device}, session.devices));
  DSPARK_ASSIGN_OR_RETURN(running, Session::create(program, session));
  regions = std::make_unique<RegionProblem>(*program, options.threads);
  return control.open(session.devices[0].library);
}

// Expected answers and predictions, by a session that has done nothing else.
Status Machine::learnSizes() {
  SessionOptions plain;
  plain.threads = options.threads;
  DSPARK_RETURN_IF_ERROR(parseDevices({options.device}, plain.devices));
  DSPARK_ASSIGN_OR_RETURN(auto session, Session::create(program, plain));
  for (const auto &dims : options.sizes) {
    Size &size = sizes.emplace_back();
    InputRequest request;
    request.dims = dims;
    DSPARK_ASSIGN_OR_RETURN(size.inputs, gatherInputs(*program, request));
    std::deque<std::vector<BorrowedValue>> nodes;
    std::vector<BorrowedValue> lent;
    for (HostValue &value : size.inputs.values)
      lent.push_back(lend(value, nodes));
    session->place({});
    std::span<const BorrowedValue> given(lent);
    DSPARK_RETURN_IF_ERROR(session->run(given));
    size.expected = outputsOf(*session);
    DSPARK_ASSIGN_OR_RETURN(BoundPlan bound, session->bind(given));
    size.problem = regions->predicted(session->devices(), bound, MachineProfile::generic().model);
    takeVirtualTimes(*program, bound, *regions, options.threads, size.problem);
    session->place(chosenPlacement(*program));
    DSPARK_ASSIGN_OR_RETURN(BoundPlan placed, session->bind(given));
    if (sizes.size() == 1) // what fits changes while inputs have the usual size
      tensorBytes =
          double(std::accumulate(placed.deviceBytes.begin(), placed.deviceBytes.end(), uint64_t(0)));
  }
  return Status::ok();
}

void Machine::enter(const State &state) {
  now = state;
  double weights = 0, largest = 0;
  for (const RegionInfo &region : program->regions())
    for (const RegionInfo::Variant &variant : region.variants)
      if (variant.device == 1) {
        weights += double(variant.bytes);
        largest = std::max(largest, double(variant.bytes));
      }
  double left = weights * state.memoryShare + tensorBytes + 2 * largest; // a canary has a step of its own
  std::string faults;
  auto add = [&](const std::string &fault) { faults += (faults.empty() ? "" : ", ") + fault; };
  if (state.device != 1)
    add(R"({"kind": "slow", "factor": )" + std::to_string(state.device) + "}");
  if (state.isFaulty)
    add(R"({"kind": "fault", "from": )" + std::to_string(random() % kFaultWithin) + "}");
  if (state.memoryShare < 1)
    add(R"({"kind": "memory", "bytes": )" + std::to_string(uint64_t(left)) + "}");
  control.setFaults("[" + faults + "]");
}

double Machine::disturbed() {
  return 1 + options.noise * std::uniform_real_distribution<double>(-1, 1)(random);
}

AssignmentProblem Machine::truth(const State &state) const {
  AssignmentProblem problem = sizes[size_t(state.size)].problem;
  double weights = 0;
  for (AssignedRegion &region : problem.regions)
    for (RegionVariant &variant : region.variants) {
      bool isAll = regions->isAllThreads(variant.device), isCpu = variant.device == 0 || isAll;
      variant.seconds *= !isCpu ? state.device : isAll ? state.allThreads : state.oneThread;
      weights += isCpu ? 0 : variant.bytes;
      if (!isCpu && state.isFaulty)
        variant.seconds = kNever;
    }
  if (state.memoryShare < 1)
    problem.deviceBytes[1] = weights * state.memoryShare;
  return problem;
}

double Machine::seconds(const std::vector<int> &variants, const State &state) const {
  AssignmentProblem problem = truth(state);
  std::vector<int> possible = variants;
  double used = 0;
  for (size_t r = 1; r < possible.size(); ++r) {
    const RegionVariant &variant = problem.regions[r].variants[size_t(possible[r])];
    bool isAway = placeOf(problem, variant.device) != 0;
    if (!isAway)
      continue;
    used += variant.bytes;
    if (state.isFaulty || used > problem.deviceBytes[1])
      for (size_t v = 0; v < problem.regions[r].variants.size(); ++v)
        if (placeOf(problem, problem.regions[r].variants[v].device) == 0)
          possible[r] = int(v); // of one thread and all, the last
  }
  return evaluateAssignment(problem, possible).seconds;
}

std::vector<int> Machine::variantsNow() const {
  std::vector<int> variants = {0};
  const Placement &placement = running->placement();
  std::span<const char> serial = running->serialRegions();
  for (size_t r = 0; r < program->regions().size(); ++r) {
    const RegionInfo &region = program->regions()[r];
    int device = placement.empty() ? 0 : placement[size_t(region.steps[0])];
    size_t v = 0;
    while (region.variants[v].device != device)
      ++v;
    bool isParallel = device == 0 && options.threads > 1 && (serial.empty() || !serial[r]);
    variants.push_back(int(isParallel ? region.variants.size() : v));
  }
  return variants;
}

Run Machine::run() {
  Size &size = sizes[size_t(now.size)];
  running->setVirtualSlowdown(now.oneThread * disturbed(), now.allThreads * disturbed());
  std::deque<std::vector<BorrowedValue>> nodes;
  std::vector<BorrowedValue> lent;
  for (HostValue &value : size.inputs.values)
    lent.push_back(lend(value, nodes));
  double begin = control.seconds();
  Run made;
  made.hasAnswer = running->run(std::span<const BorrowedValue>(lent)).isOk();
  made.isRight = made.hasAnswer && apart(outputsOf(*running), size.expected) <= kWithin;
  made.variants = variantsNow();
  State worked = now; // what ran before the fault, ran
  worked.isFaulty = false;
  AssignmentProblem problem = truth(worked);
  made.seconds = evaluateAssignment(problem, made.variants).seconds;
  // What the device did beyond that was in vain, or a canary.
  made.seconds += std::max(0.0, control.seconds() - begin - deviceSeconds(problem, made.variants));
  bool hasFallen = now.isFaulty && before.size() == made.variants.size() && before != made.variants;
  if (hasFallen) // what the CPU did of the run that failed: at most that plan's time
    made.seconds += seconds(before, State{.size = now.size});
  before = made.variants;
  return made;
}

} // namespace dspark::bench
