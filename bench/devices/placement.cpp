// How near the compiler's placement is to the best one: every placement of a plan's regions (at most ten of
// two variants) runs by turns with the others, and the compiler's is compared with the fastest. Results are
// checked against the CPU's first.
//
//   bench_placement PLAN NAME=LIBRARY.so,CONFIG [ROUNDS] [NAME=N of symbolic dims ...]
//
// With a stub that computes for real (`isa`, `takes_time`) this is measured time; DSPARK_ISA=baseline makes
// the CPU slow enough for a stub with avx2 kernels to play a fast NPU.
#include "runtime/executor/Session.h"
#include "tools/dspark-rt/Inputs.h"
#include "tools/dspark-rt/OptionTexts.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>

using namespace dspark;

namespace {

constexpr size_t kMostRegions = 10;
constexpr double kWithin = 1e-3; // of the outputs: other kernels sum in another order

struct Candidate {
  std::vector<int> variants;
  Placement placement;
  std::vector<double> seconds;
  double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

std::vector<Candidate> allPlacements(const Program &program) {
  std::vector<Candidate> candidates(1);
  for (const RegionInfo &region : program.regions()) {
    std::vector<Candidate> longer;
    for (const Candidate &candidate : candidates)
      for (size_t v = 0; v < region.variants.size(); ++v) {
        longer.push_back(candidate);
        longer.back().variants.push_back(int(v));
      }
    candidates = std::move(longer);
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

Status run(const std::string &path, const std::string &device, int rounds,
           const std::vector<std::string> &dims) {
  DSPARK_ASSIGN_OR_RETURN(auto file, PlanFile::open(path));
  DSPARK_ASSIGN_OR_RETURN(auto program, Program::create(std::move(file)));
  if (program->regions().empty() || program->regions().size() > kMostRegions)
    return invalidArgument(path + ": it has " + std::to_string(program->regions().size()) +
                           " regions, expected 1 to " + std::to_string(kMostRegions));
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
  std::span<const BorrowedValue> given(lent);

  session->place({});
  DSPARK_RETURN_IF_ERROR(session->run(given));
  std::vector<float> expected = outputsOf(*session);
  std::vector<Candidate> candidates = allPlacements(*program);
  for (int round = 0; round <= rounds; ++round)
    for (Candidate &candidate : candidates) {
      session->place(candidate.placement);
      DSPARK_RETURN_IF_ERROR(session->run(given)); // the first after another placement finds colder caches
      if (double off = apart(outputsOf(*session), expected); round == 0 && !(off <= kWithin))
        return Status(Code::Mismatch, "a placement's outputs are off by " + std::to_string(off));
      auto start = std::chrono::steady_clock::now();
      DSPARK_RETURN_IF_ERROR(session->run(given));
      std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      if (round > 0)
        candidate.seconds.push_back(taken.count());
    }
  Placement chosenPlaces = chosenPlacement(*program);
  const Candidate *chosen = nullptr, *best = nullptr, *cpu = nullptr;
  for (const Candidate &candidate : candidates) {
    chosen = candidate.placement == chosenPlaces ? &candidate : chosen;
    cpu = candidate.placement.empty() ? &candidate : cpu;
    best = !best || candidate.median() < best->median() ? &candidate : best;
  }
  std::printf("%zu placements: compiler's %.4f ms, best %.4f ms (%+.1f %%), CPU alone %.4f ms\n",
              candidates.size(), chosen->median() * 1e3, best->median() * 1e3,
              (chosen->median() / best->median() - 1) * 100, cpu->median() * 1e3);
  return Status::ok();
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    std::cerr << "usage: bench_placement PLAN NAME=LIBRARY.so,CONFIG [ROUNDS] [NAME=N ...]\n";
    return 1;
  }
  int rounds = argc > 3 ? std::max(1, std::atoi(argv[3])) : 30;
  Status status = run(argv[1], argv[2], rounds, {argv + std::min(argc, 4), argv + argc});
  if (!status.isOk())
    std::cerr << "bench_placement: " << status.message() << "\n";
  return status.isOk() ? 0 : 1;
}
