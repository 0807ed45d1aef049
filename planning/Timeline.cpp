#include "planning/Timeline.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr double kAllAssignments = 4096; // are tried where there are no more
constexpr size_t kMostWork = 10'000'000; // regions passed in one search, about a third of a second
constexpr size_t kLongestRow = 32;       // regions that are moved together

} // namespace

Timeline::Timeline(const AssignmentProblem &problem)
    : problem(problem), reads(problem.regions.size()), produces(problem.regions.size()),
      edgesTo(problem.regions.size()), started(problem.regions.size()), flows(problem.flows.size()) {
  for (int d = problem.devices; d-- > 0;) {
    size_t place = size_t(placeOf(problem, d));
    deviceOf.resize(std::max(deviceOf.size(), place + 1));
    deviceOf[place] = d;
  }
  clocks.resize(deviceOf.size());
  for (size_t f = 0; f < flows.size(); ++f) {
    produces[size_t(problem.flows[f].producer)].push_back(f);
    for (int consumer : problem.flows[f].consumers)
      reads[size_t(consumer)].push_back(f);
  }
  for (size_t e = 0; e < problem.edges.size(); ++e)
    edgesTo[size_t(problem.edges[e].to)].push_back(e);
}

int Timeline::placeOfRegion(size_t region) const {
  return placeOf(problem, problem.regions[region].variants[size_t((*variants)[region])].device);
}

double Timeline::copySeconds(int from, int to, double bytes) const {
  const TransferCost &link =
      problem.transfers[size_t(deviceOf[size_t(from)] * problem.devices + deviceOf[size_t(to)])];
  return link.latency + link.perByte * bytes;
}

void Timeline::send(size_t region) {
  int from = placeOfRegion(region);
  for (size_t f : produces[region]) {
    Flow &flow = flows[f];
    const AssignedFlow &value = problem.flows[f];
    flow.reached = uint64_t(1) << from;
    flow.atHost = clocks[0];
    bool isWanted = false;
    for (int consumer : value.consumers) {
      int to = placeOfRegion(size_t(consumer));
      isWanted |= to != from;
      if (from != 0 || (flow.reached >> to & 1))
        continue;
      double &queue = clocks[size_t(to)];
      queue = std::max(queue, clocks[0]) + copySeconds(0, to, value.bytes);
      flow.reached |= uint64_t(1) << to;
    }
    if (from != 0 && isWanted)
      flow.atHost = clocks[size_t(from)] += copySeconds(from, 0, value.bytes);
  }
}

// What another device has made passes through the host, which waits for it.
void Timeline::fetch(size_t f, int place) {
  Flow &flow = flows[f];
  if (flow.reached >> place & 1)
    return;
  clocks[0] = std::max(clocks[0], flow.atHost);
  flow.reached |= 1 | uint64_t(1) << place;
  if (place != 0)
    clocks[size_t(place)] =
        std::max(clocks[size_t(place)], clocks[0]) + copySeconds(0, place, problem.flows[f].bytes);
}

double Timeline::end(const std::vector<int> &chosen) {
  variants = &chosen;
  std::fill(clocks.begin(), clocks.end(), 0);
  if (problem.regions.empty())
    return 0;
  send(0);
  for (size_t r = 1; r < problem.regions.size(); ++r) {
    int place = placeOfRegion(r);
    for (size_t f : reads[r])
      fetch(f, place);
    double seconds = problem.regions[r].variants[size_t(chosen[r])].seconds;
    for (size_t e : edgesTo[r])
      seconds += edgeSeconds(problem, problem.edges[e], chosen);
    double &clock = clocks[size_t(place)];
    started[r] = std::max(clock, clocks[0]);
    clock = started[r] + seconds;
    send(r);
  }
  for (size_t f : reads[0])
    fetch(f, 0);
  return *std::max_element(clocks.begin(), clocks.end());
}

namespace {

class Search {
public:
  Search(const AssignmentProblem &problem, const AssignmentSolution &start)
      : problem(problem), timeline(problem), best(start.variants), now(start.variants),
        least(timeline.end(best)) {}

  /// True if all assignments were tried.
  bool run() {
    double count = 1;
    for (const AssignedRegion &region : problem.regions)
      count *= double(region.variants.size());
    if (count <= kAllAssignments) {
      tryAll(0);
      return true;
    }
    for (bool isBetter = true; isBetter;) {
      isBetter = false;
      for (size_t length = 1; length <= kLongestRow; length *= 2)
        for (size_t first = 0; first + length <= now.size(); ++first)
          for (int device = 0; device < problem.devices; ++device)
            isBetter |= moveRow(first, length, device);
    }
    return false;
  }

  const std::vector<int> &found() const { return best; }
  double seconds() const { return least; }

private:
  void tryAll(size_t region) {
    if (region == now.size())
      return void(consider());
    for (size_t v = 0; v < problem.regions[region].variants.size(); ++v) {
      now[region] = int(v);
      tryAll(region + 1);
    }
  }

  // Regions that cannot run there stay where they are.
  bool moveRow(size_t first, size_t length, int device) {
    if (work > kMostWork)
      return false;
    bool hasChanged = false;
    for (size_t r = first; r < first + length; ++r)
      for (size_t v = 0; v < problem.regions[r].variants.size(); ++v)
        if (problem.regions[r].variants[v].device == device && now[r] != int(v)) {
          now[r] = int(v);
          hasChanged = true;
          break;
        }
    if (hasChanged && consider())
      return true;
    now = best;
    return false;
  }

  // Keeps `now` if it is better.
  bool consider() {
    work += now.size();
    double seconds = timeline.end(now);
    if (!(seconds < least * (1 - 1e-9)) || !isWithinBounds())
      return false;
    least = seconds;
    best = now;
    return true;
  }

  bool isWithinBounds() const {
    double error = 0;
    std::vector<double> bytes(problem.deviceBytes.size());
    for (size_t r = 0; r < now.size(); ++r) {
      const RegionVariant &variant = problem.regions[r].variants[size_t(now[r])];
      error += variant.error;
      if (size_t(variant.device) < bytes.size())
        bytes[size_t(variant.device)] += variant.bytes;
    }
    bool isWithin = error <= problem.errorBudget;
    for (size_t d = 0; d < bytes.size(); ++d)
      isWithin &= bytes[d] <= problem.deviceBytes[d];
    return isWithin;
  }

  const AssignmentProblem &problem;
  Timeline timeline;
  std::vector<int> best, now;
  double least;
  size_t work = 0;
};

} // namespace

AssignmentSolution endEarlier(const AssignmentProblem &problem, const AssignmentSolution &start) {
  AssignmentSolution solution = start;
  Search search(problem, start);
  // Without anything within the bounds there is nothing to hold other assignments against.
  bool isComplete = start.isFeasible && search.run();
  if (start.isFeasible)
    solution = evaluateAssignment(problem, search.found());
  solution.seconds = search.seconds();
  solution.isOptimal = isComplete;
  // No place can do more than one thing at a time, so an end is no earlier than an equal share of the sum.
  solution.lowerBound = isComplete ? solution.seconds : start.lowerBound / double(problem.devices);
  return solution;
}

} // namespace dspark
