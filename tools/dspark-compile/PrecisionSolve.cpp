#include "tools/dspark-compile/PrecisionSolve.h"
#include "planning/Assignment.h"
#include <algorithm>
#include <cmath>

namespace dspark {
namespace {

constexpr double kNever = kUnbounded; // an error that no other budget has room for

bool isStatic(const PrecisionRegion &region, int choice) {
  return choice >= 0 && region.variants[size_t(choice)].isStatic();
}

// Regions first, then values, of two variants each.
class Problem {
public:
  enum Form { Floats, Bytes };

  Problem(const std::vector<PrecisionRegion> &regions, const std::vector<PrecisionValue> &values,
          double budget)
      : regions(regions), values(values), readers(values.size()) {
    problem.errorBudget = budget;
    for (const PrecisionRegion &region : regions)
      if (region.input >= 0)
        ++readers[size_t(region.input)];
    for (const PrecisionValue &value : values)
      for (size_t operand : value.operands)
        ++readers[operand];
  }

  /// The regions' variants that may be chosen: one after the other, region by region.
  void addRegion() {
    problem.regions.emplace_back();
    names.emplace_back();
  }
  void addVariant(int variant, double error) {
    const PrecisionRegion &region = regions[names.size() - 1];
    double seconds = variant < 0 ? region.seconds : region.variants[size_t(variant)].seconds;
    problem.regions.back().variants.push_back({0, seconds, error, 0});
    names.back().push_back(variant);
  }

  AssignmentSolution solve() {
    for (const PrecisionValue &value : values)
      addValue(value);
    for (size_t v = 0; v < values.size(); ++v)
      addEdges(v);
    return solveAssignment(problem);
  }
  std::vector<int> choicesOf(const AssignmentSolution &solution) const {
    std::vector<int> choices;
    for (size_t r = 0; r < names.size(); ++r)
      choices.push_back(names[r][size_t(solution.variants[r])]);
    return choices;
  }

private:
  void addValue(const PrecisionValue &value) {
    AssignedRegion &node = problem.regions.emplace_back();
    node.variants.push_back({0, 0, 0, 0});
    if (!value.canBeMadeOfBytes())
      return;
    // A sum of bytes takes about as long as quantising: one pass over so many elements.
    double step = value.operands.size() > 1 ? value.quantizeSeconds : 0;
    node.variants.push_back({0, step + (value.hasFloatReaders ? value.quantizeSeconds : 0), 0, 0});
  }

  // Each reader of a value pays its share of the quantising that readers of the other form ask for.
  void addEdges(size_t v) {
    const PrecisionValue &value = values[v];
    int node = nodeOf(v);
    if (value.region >= 0)
      addEdge(value.region, node, [&](int choice, Form form) {
        return form == Bytes && !isStatic(regions[size_t(value.region)], choice) ? value.quantizeSeconds : 0;
      });
    double share = value.quantizeSeconds / std::max(1, readers[v]);
    for (size_t r = 0; r < regions.size(); ++r)
      if (regions[r].input == int(v))
        addEdge(int(r), node, [&](int choice, Form form) {
          return isStatic(regions[r], choice) != (form == Bytes) ? share : 0;
        });
    for (size_t other = 0; other < values.size(); ++other)
      for (size_t operand : values[other].operands)
        if (operand == v && other != v)
          addValueEdge(node, nodeOf(other), share);
  }

  int nodeOf(size_t value) const { return int(names.size() + value); }
  size_t formsOf(int node) const { return problem.regions[size_t(node)].variants.size(); }

  void addEdge(int region, int value, auto seconds) {
    AssignedEdge edge{region, value, {}};
    for (int choice : names[size_t(region)])
      for (size_t form = 0; form < formsOf(value); ++form)
        edge.seconds.push_back(seconds(choice, Form(form)));
    problem.edges.push_back(std::move(edge));
  }
  void addValueEdge(int from, int to, double seconds) {
    AssignedEdge edge{from, to, {}};
    for (size_t first = 0; first < formsOf(from); ++first)
      for (size_t second = 0; second < formsOf(to); ++second)
        edge.seconds.push_back(first != second ? seconds : 0);
    problem.edges.push_back(std::move(edge));
  }

  const std::vector<PrecisionRegion> &regions;
  const std::vector<PrecisionValue> &values;
  std::vector<int> readers; // of each value: regions and values made of it
  AssignmentProblem problem;
  std::vector<std::vector<int>> names; // of the regions' variants
};

bool fits(const PrecisionVariant &variant, const std::string &layout) {
  return layout == kStaticInt8
             ? variant.isStatic()
             : !variant.isStatic() && variant.mostRows == 0 && variant.layout.starts_with(layout);
}

// What quantising a region's input costs at least: nothing if something before it can give bytes.
double ownQuantizing(const PrecisionRegion &region, const std::vector<PrecisionValue> &values) {
  return region.input >= 0 && values[size_t(region.input)].canBeMadeOfBytes() ? 0 : region.quantizeSeconds;
}

} // namespace

std::vector<int> solvePrecision(const std::vector<PrecisionRegion> &regions,
                                const std::vector<PrecisionValue> &values, const PrecisionRule &rule,
                                double budget) {
  Problem problem(regions, values, budget);
  for (size_t r = 0; r < regions.size(); ++r) {
    const PrecisionRegion &region = regions[r];
    bool isForced = !rule.only.empty() && region.pinnedBecause.empty(), hasForm = false;
    problem.addRegion();
    for (size_t v = 0; v < region.variants.size(); ++v) {
      const PrecisionVariant &variant = region.variants[v];
      double error = region.error(variant);
      double seconds = variant.seconds + (variant.isStatic() ? ownQuantizing(region, values) : 0);
      bool isAllowed = isForced ? fits(variant, rule.only)
                                : seconds < region.seconds * (1 - kLeastGain) && std::isfinite(error);
      if (isAllowed)
        problem.addVariant(int(v), std::isfinite(error) ? rule.gains[r] * error * error : kNever);
      hasForm |= isAllowed;
    }
    if (!isForced || !hasForm)
      problem.addVariant(-1, 0);
  }
  return problem.choicesOf(problem.solve());
}

double secondsOf(const std::vector<PrecisionRegion> &regions, const std::vector<PrecisionValue> &values,
                 const std::vector<int> &choices) {
  Problem problem(regions, values, kUnbounded);
  for (int choice : choices) {
    problem.addRegion();
    problem.addVariant(choice, 0);
  }
  return problem.solve().seconds;
}

} // namespace dspark
