// How near the compiler's placement is to the best one: every placement of a plan's regions runs by turns
// with the others; the fastest of them then take turns with the compiler's, and the medians of the ratios of
// neighbouring runs count. Results are checked against the CPU's first. Prints a line of JSON.
//
//   bench_placement PLAN NAME=LIBRARY.so,CONFIG [ROUNDS] [NAME=N of symbolic dims ...]
//
// With a stub that takes its time (`takes_time`) this is measured time. bench/placement makes plans for it.
#include "runtime/executor/Session.h"
#include "tools/dspark-rt/Inputs.h"
#include "tools/dspark-rt/OptionTexts.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

using namespace dspark;

namespace {

constexpr size_t kMostPlacements = 1024;
constexpr int kScreening = 3; // rounds in which all take part
constexpr size_t kFinalists = 4;
constexpr double kWithin = 1e-3; // of the outputs: other kernels sum in another order

struct Candidate {
  std::vector<int> variants;
  Placement placement;
  double least = INFINITY;    // seconds, while screening
  std::vector<double> ratios; // the compiler's time to this one's, run by run
  double ratio = 0;           // their median
};

double medianOf(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + ptrdiff_t(values.size() / 2), values.end());
  return values[values.size() / 2];
}

StatusOr<std::vector<Candidate>> allPlacements(const Program &program) {
  std::vector<Candidate> candidates(1);
  for (const RegionInfo &region : program.regions()) {
    std::vector<Candidate> longer;
    for (const Candidate &candidate : candidates)
      for (size_t v = 0; v < region.variants.size(); ++v) {
        longer.push_back(candidate);
        longer.back().variants.push_back(int(v));
      }
    candidates = std::move(longer);
    if (candidates.size() > kMostPlacements)
      return invalidArgument("its regions have more than " + std::to_string(kMostPlacements) + " placements");
  }
  for (Candidate &candidate : candidates)
    candidate.placement = placementOf(program, candidate.variants);
  return candidates;
}

std::vector<float> outputsOf(const Session &session) {
  std::vector<float> all;
  for (size_t k = 0; k < session.outputCount(); ++k)
    if (const TensorView &view = session.output(k); view.type == DType::F32)
      all.insert(all.end(), view.as<float>(), view.as<float>() + view.elements());
  return all;
}

double apart(const std::vector<float> &a, const std::vector<float> &b) {
  double noise = 0, signal = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    noise += std::pow(double(a[i]) - double(b[i]), 2);
    signal += std::pow(double(b[i]), 2);
  }
  return noise == 0 ? 0 : std::sqrt(noise / signal);
}

class Comparison {
public:
  Comparison(Session &session, std::span<const BorrowedValue> inputs) : session(session), inputs(inputs) {}

  StatusOr<nlohmann::json> run(int rounds) {
    DSPARK_ASSIGN_OR_RETURN(candidates, allPlacements(session.program()));
    DSPARK_RETURN_IF_ERROR(screen());
    const Placement chosenPlaces = chosenPlacement(session.program());
    auto chosen = std::find_if(candidates.begin(), candidates.end(),
                               [&](const Candidate &one) { return one.placement == chosenPlaces; });
    if (chosen == candidates.end())
      return Status(Code::NotFound, "the compiler's placement does not run as it is");
    Candidate compilers = *chosen;
    candidates.erase(chosen);
    std::sort(candidates.begin(), candidates.end(),
              [](const Candidate &a, const Candidate &b) { return a.least < b.least; });
    size_t all = candidates.size() + 1;
    candidates.resize(std::min(candidates.size(), kFinalists));
    DSPARK_RETURN_IF_ERROR(compare(compilers, rounds));
    const Candidate *best = nullptr;
    for (const Candidate &other : candidates)
      best = !best || other.ratio > best->ratio ? &other : best;
    return nlohmann::json{{"placements", all},
                          {"chosen", compilers.variants},
                          {"chosen_s", compilers.least},
                          {"best", best ? best->variants : compilers.variants},
                          {"best_s", best ? best->least : compilers.least},
                          {"ratio", best ? std::max(best->ratio, 1.0) : 1.0},
                          {"cpu_s", cpuSeconds}};
  }

private:
  StatusOr<double> timed(const Candidate &candidate) {
    session.place(candidate.placement);
    DSPARK_RETURN_IF_ERROR(session.run(inputs)); // the first after another placement finds colder caches
    auto start = std::chrono::steady_clock::now();
    DSPARK_RETURN_IF_ERROR(session.run(inputs));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  // Drops what does not fit in the device's memory: such runs end on the CPU.
  Status screen() {
    session.place({});
    DSPARK_RETURN_IF_ERROR(session.run(inputs));
    std::vector<float> expected = outputsOf(session);
    for (int round = 0; round < kScreening; ++round)
      for (Candidate &candidate : candidates) {
        DSPARK_ASSIGN_OR_RETURN(double seconds, timed(candidate));
        if (double off = apart(outputsOf(session), expected); !(off <= kWithin))
          return Status(Code::Mismatch, "a placement's outputs are off by " + std::to_string(off));
        candidate.least =
            session.placement() == candidate.placement ? std::min(candidate.least, seconds) : INFINITY;
        if (candidate.placement.empty())
          cpuSeconds = candidate.least;
      }
    std::erase_if(candidates, [](const Candidate &one) { return !std::isfinite(one.least); });
    return Status::ok();
  }

  Status compare(Candidate &compilers, int rounds) {
    for (int round = 0; round < rounds; ++round)
      for (Candidate &other : candidates) {
        DSPARK_ASSIGN_OR_RETURN(double first, timed(compilers));
        DSPARK_ASSIGN_OR_RETURN(double second, timed(other));
        other.ratios.push_back(first / second);
        compilers.least = std::min(compilers.least, first);
        other.least = std::min(other.least, second);
      }
    for (Candidate &other : candidates)
      other.ratio = medianOf(other.ratios);
    return Status::ok();
  }

  Session &session;
  std::span<const BorrowedValue> inputs;
  std::vector<Candidate> candidates;
  double cpuSeconds = 0;
};

Status run(const std::string &path, const std::string &device, int rounds,
           const std::vector<std::string> &dims) {
  DSPARK_ASSIGN_OR_RETURN(auto file, PlanFile::open(path));
  DSPARK_ASSIGN_OR_RETURN(auto program, Program::create(std::move(file)));
  if (program->regions().empty())
    return invalidArgument(path + " has no regions (dspark-compile --device)");
  SessionOptions options;
  options.threads = 1;
  DSPARK_RETURN_IF_ERROR(parseDevices({device}, options.devices));
  DSPARK_ASSIGN_OR_RETURN(auto session, Session::create(program, options));
  InputRequest request;
  DSPARK_RETURN_IF_ERROR(parseDims(dims, request.dims));
  DSPARK_ASSIGN_OR_RETURN(Inputs inputs, gatherInputs(*program, request));
  std::deque<std::vector<BorrowedValue>> nodes;
  std::vector<BorrowedValue> lent;
  for (HostValue &value : inputs.values)
    lent.push_back(lend(value, nodes));
  DSPARK_ASSIGN_OR_RETURN(nlohmann::json found, Comparison(*session, lent).run(rounds));
  std::cout << found.dump() << "\n";
  return Status::ok();
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    std::cerr << "usage: bench_placement PLAN NAME=LIBRARY.so,CONFIG [ROUNDS] [NAME=N ...]\n";
    return 1;
  }
  int rounds = argc > 3 ? std::max(1, std::atoi(argv[3])) : 15;
  Status status = run(argv[1], argv[2], rounds, {argv + std::min(argc, 4), argv + argc});
  if (!status.isOk())
    std::cerr << "bench_placement: " << status.message() << "\n";
  return status.isOk() ? 0 : 1;
}
