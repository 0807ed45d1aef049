#include "tools/dspark-compile/PrecisionSolve.h"
#include "planning/Assignment.h"
#include <cmath>

namespace dspark {
namespace {

constexpr double kNever = 1e300; // an error that no budget has room for

// What quantising a region's input costs at least: nothing if something before it can give bytes.
double ownQuantizing(const PrecisionRegion &region) {
  return region.producers.empty() ? region.quantizeSeconds : 0;
}

bool isStatic(const PrecisionRegion &region, int choice) {
  return choice >= 0 && region.variants[size_t(choice)].isStatic();
}

class Problem {
public:
  Problem(const std::vector<PrecisionRegion> &regions, const PrecisionRule &rule, double budget)
      : regions(regions), rule(rule) {
    problem.errorBudget = budget;
    for (size_t r = 0; r < regions.size(); ++r)
      addRegion(r);
    for (size_t r = 0; r < regions.size(); ++r)
      for (size_t producer : regions[r].producers)
        addEdge(producer, r);
  }

  std::vector<int> solve() const {
    AssignmentSolution solution = solveAssignment(problem);
    std::vector<int> choices;
    for (size_t r = 0; r < names.size(); ++r)
      choices.push_back(names[r][size_t(solution.variants[r])]);
    return choices;
  }

private:
  void addRegion(size_t r) {
    const PrecisionRegion &region = regions[r];
    AssignedRegion &assigned = problem.regions.emplace_back();
    std::vector<int> &variants = names.emplace_back();
    bool isForced = !rule.only.empty() && region.pinnedBecause.empty();
    for (size_t v = 0; v < region.variants.size(); ++v) {
      const PrecisionVariant &variant = region.variants[v];
      double error = region.error(variant);
      double seconds = variant.seconds + (variant.isStatic() ? ownQuantizing(region) : 0);
      bool isAllowed =
          isForced ? fits(variant) : seconds < region.seconds * (1 - kLeastGain) && std::isfinite(error);
      if (!isAllowed)
        continue;
      assigned.variants.push_back(
          {0, seconds, std::isfinite(error) ? rule.gains[r] * error * error : kNever, 0});
      variants.push_back(int(v));
    }
    if (!isForced || variants.empty()) {
      assigned.variants.push_back({0, region.seconds, 0, 0});
      variants.push_back(-1);
    }
  }

  bool fits(const PrecisionVariant &variant) const {
    return rule.only == kStaticInt8
               ? variant.isStatic()
               : !variant.isStatic() && variant.mostRows == 0 && variant.layout.starts_with(rule.only);
  }

  void addEdge(size_t from, size_t to) {
    AssignedEdge edge{int(from), int(to), {}};
    double seconds = regions[to].quantizeSeconds / double(regions[to].producers.size());
    for (int first : names[from])
      for (int second : names[to])
        edge.seconds.push_back(isStatic(regions[to], second) && !isStatic(regions[from], first) ? seconds
                                                                                                : 0);
    problem.edges.push_back(std::move(edge));
  }

  const std::vector<PrecisionRegion> &regions;
  const PrecisionRule &rule;
  AssignmentProblem problem;
  std::vector<std::vector<int>> names; // of the solver's variants
};

} // namespace

std::vector<int> solvePrecision(const std::vector<PrecisionRegion> &regions, const PrecisionRule &rule,
                                double budget) {
  return Problem(regions, rule, budget).solve();
}

double secondsOf(const std::vector<PrecisionRegion> &regions, const std::vector<int> &choices) {
  double sum = 0;
  for (size_t r = 0; r < regions.size(); ++r) {
    const PrecisionRegion &region = regions[r];
    sum += choices[r] < 0 ? region.seconds : region.variants[size_t(choices[r])].seconds;
    if (!isStatic(region, choices[r]))
      continue;
    sum += ownQuantizing(region);
    for (size_t producer : region.producers)
      if (!isStatic(regions[producer], choices[producer]))
        sum += region.quantizeSeconds / double(region.producers.size());
  }
  return sum;
}

} // namespace dspark
