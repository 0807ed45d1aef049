#include "planning/Assignment.h"
#include "planning/Elimination.h"
#include "planning/Timeline.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace dspark {

double edgeSeconds(const AssignmentProblem &p, const AssignedEdge &edge, const std::vector<int> &variants) {
  size_t width = p.regions[size_t(edge.to)].variants.size();
  return edge.seconds[size_t(variants[size_t(edge.from)]) * width + size_t(variants[size_t(edge.to)])];
}

namespace {

// Larger tables of a value and its consumers are replaced by a lower bound.
constexpr double kMaxFlowTable = 4096;
constexpr size_t kSearchedRegions = 40, kMaxNodes = 4'000'000;
constexpr double kSlack = 1e-12; // of a bound, for sums that round

double transferSeconds(const AssignmentProblem &p, int from, int to, double bytes) {
  if (from == to || p.transfers.empty())
    return 0;
  const TransferCost &cost = p.transfers[size_t(from * p.devices + to)];
  return cost.latency + cost.perByte * bytes;
}

const RegionVariant &chosen(const AssignmentProblem &p, const std::vector<int> &variants, int region) {
  return p.regions[size_t(region)].variants[size_t(variants[size_t(region)])];
}

double flowSeconds(const AssignmentProblem &p, const AssignedFlow &flow, const std::vector<int> &variants) {
  int from = chosen(p, variants, flow.producer).device;
  uint64_t sent = uint64_t(1) << placeOf(p, from);
  double sum = 0;
  for (int consumer : flow.consumers) {
    int to = chosen(p, variants, consumer).device;
    if (!(sent >> placeOf(p, to) & 1))
      sum += transferSeconds(p, from, to, flow.bytes);
    sent |= uint64_t(1) << placeOf(p, to);
  }
  return sum;
}

bool exceeds(double value, double bound) { return value > bound + kSlack * (std::fabs(bound) + 1e-300); }

// Time as a sum, whether or not devices overlap.
AssignmentSolution summedAssignment(const AssignmentProblem &p, const std::vector<int> &variants) {
  AssignmentSolution solution;
  solution.variants = variants;
  solution.bytes.resize(size_t(p.devices));
  for (size_t r = 0; r < p.regions.size(); ++r) {
    const RegionVariant &variant = chosen(p, variants, int(r));
    solution.seconds += variant.seconds;
    solution.error += variant.error;
    solution.bytes[size_t(variant.device)] += variant.bytes;
  }
  for (const AssignedEdge &edge : p.edges)
    solution.seconds += edgeSeconds(p, edge, variants);
  for (const AssignedFlow &flow : p.flows)
    solution.seconds += flowSeconds(p, flow, variants);
  solution.isFeasible = !exceeds(solution.error, p.errorBudget);
  for (size_t d = 0; d < p.deviceBytes.size(); ++d)
    solution.isFeasible &= !exceeds(solution.bytes[d], p.deviceBytes[d]);
  return solution;
}

// The error's bound and the devices' limits as one list: used - limit, relative to the limit.
class Bounds {
public:
  explicit Bounds(const AssignmentProblem &p) : p(p) {}
  size_t count() const { return 1 + p.deviceBytes.size(); }
  double limit(size_t k) const { return k == 0 ? p.errorBudget : p.deviceBytes[k - 1]; }
  double use(size_t k, const RegionVariant &v) const {
    return k == 0 ? v.error : size_t(v.device) == k - 1 ? v.bytes : 0;
  }

private:
  const AssignmentProblem &p;
};

Factor flowFactor(const AssignmentProblem &p, const AssignedFlow &flow) {
  Factor factor;
  factor.scope.push_back(flow.producer);
  for (int consumer : flow.consumers)
    if (std::find(factor.scope.begin(), factor.scope.end(), consumer) == factor.scope.end())
      factor.scope.push_back(consumer);
  std::vector<int> variants(p.regions.size());
  for (bool isDone = false; !isDone;) {
    factor.values.push_back(flowSeconds(p, flow, variants));
    isDone = true;
    for (size_t i = factor.scope.size(); i-- > 0 && isDone;) {
      int &digit = variants[size_t(factor.scope[i])];
      isDone = ++digit == int(p.regions[size_t(factor.scope[i])].variants.size());
      digit = isDone ? 0 : digit;
    }
  }
  return factor;
}

// Pairs that each pay the share that is left when all consumers sit on that device: never more than once.
void addFlowBound(const AssignmentProblem &p, const AssignedFlow &flow, std::vector<Factor> &factors) {
  for (int consumer : flow.consumers) {
    if (consumer == flow.producer)
      continue;
    Factor factor{{flow.producer, consumer}, {}};
    for (const RegionVariant &from : p.regions[size_t(flow.producer)].variants)
      for (const RegionVariant &to : p.regions[size_t(consumer)].variants)
        factor.values.push_back(transferSeconds(p, from.device, to.device, flow.bytes) /
                                double(flow.consumers.size()));
    factors.push_back(std::move(factor));
  }
}

std::vector<Factor> factorsOf(const AssignmentProblem &p, bool &isExact) {
  std::vector<Factor> factors;
  for (const AssignedEdge &edge : p.edges)
    if (edge.from != edge.to)
      factors.push_back({{edge.from, edge.to}, edge.seconds});
  if (p.devices > 1)
    for (const AssignedFlow &flow : p.flows) {
      double entries = double(p.regions[size_t(flow.producer)].variants.size());
      for (int consumer : flow.consumers)
        entries *= double(p.regions[size_t(consumer)].variants.size());
      isExact &= entries <= kMaxFlowTable;
      if (entries <= kMaxFlowTable)
        factors.push_back(flowFactor(p, flow));
      else
        addFlowBound(p, flow, factors);
    }
  return factors;
}

class Solver {
public:
  explicit Solver(const AssignmentProblem &p)
      : p(p), bounds(p), multipliers(bounds.count()), touching(p.regions.size()),
        elimination(sizesOf(p), factorsOf(p, flowsAreExact)) {
    for (size_t i = 0; i < p.edges.size(); ++i)
      for (int region : {p.edges[i].from, p.edges[i].to})
        touching[size_t(region)].edges.push_back(int(i));
    for (size_t i = 0; i < p.flows.size(); ++i) {
      touching[size_t(p.flows[i].producer)].flows.push_back(int(i));
      for (int consumer : p.flows[i].consumers)
        touching[size_t(consumer)].flows.push_back(int(i));
    }
    for (Touching &t : touching)
      for (std::vector<int> *list : {&t.edges, &t.flows}) {
        std::sort(list->begin(), list->end());
        list->erase(std::unique(list->begin(), list->end()), list->end());
      }
  }

  AssignmentSolution solve() {
    startFromLeastUse();
    relax();
    improve(best);
    if (p.regions.size() <= kSearchedRegions)
      search();
    AssignmentSolution solution = summedAssignment(p, best);
    solution.lowerBound = solution.isFeasible ? std::min(lower, solution.seconds) : lower;
    solution.isOptimal =
        solution.isFeasible && (isProven || solution.seconds - lower <= 1e-9 * std::fabs(solution.seconds));
    if (solution.isOptimal)
      solution.lowerBound = solution.seconds;
    return solution;
  }

private:
  struct Touching {
    std::vector<int> edges, flows;
  };

  static std::vector<int> sizesOf(const AssignmentProblem &p) {
    std::vector<int> sizes;
    for (const AssignedRegion &region : p.regions)
      sizes.push_back(int(region.variants.size()));
    return sizes;
  }

  /// Of every variant of every region: its time, and its share of each bound at that bound's multiplier.
  std::vector<std::vector<double>> relaxedCosts() const {
    std::vector<std::vector<double>> unary;
    for (const AssignedRegion &region : p.regions) {
      std::vector<double> &costs = unary.emplace_back();
      for (const RegionVariant &variant : region.variants) {
        double cost = variant.seconds;
        for (size_t k = 0; k < bounds.count(); ++k)
          cost += multipliers[k] * bounds.use(k, variant);
        costs.push_back(cost);
      }
    }
    return unary;
  }

  /// The relaxed minimum for the multipliers; keeps the bound, and the assignment if it is within all bounds.
  std::vector<int> tryMultipliers() {
    double constant = 0;
    for (size_t k = 0; k < bounds.count(); ++k)
      constant += multipliers[k] * bounds.limit(k);
    double value = elimination.run(relaxedCosts()) - constant;
    if (value > lower) {
      lower = value;
      bestMultipliers = multipliers;
    }
    std::vector<int> found = elimination.greedy();
    consider(found);
    return found;
  }

  void consider(const std::vector<int> &variants) {
    AssignmentSolution found = summedAssignment(p, variants);
    if (!found.isFeasible || (hasBest && found.seconds >= bestSeconds))
      return;
    hasBest = true;
    best = variants;
    bestSeconds = found.seconds;
  }

  /// The assignment with the least error, and among those of a region the fastest: feasible if anything is,
  /// but for the devices' memory.
  void startFromLeastUse() {
    for (const AssignedRegion &region : p.regions) {
      size_t least = 0;
      for (size_t v = 1; v < region.variants.size(); ++v) {
        const RegionVariant &a = region.variants[v], &b = region.variants[least];
        if (a.error < b.error || (a.error == b.error && a.seconds < b.seconds))
          least = v;
      }
      best.push_back(int(least));
    }
    consider(std::vector<int>(best));
  }

  double excess(size_t k, const std::vector<int> &variants) const {
    double sum = 0;
    for (size_t r = 0; r < variants.size(); ++r)
      sum += bounds.use(k, p.regions[r].variants[size_t(variants[r])]);
    return sum - bounds.limit(k);
  }

  /// Raises one multiplier until its bound holds, then halves the interval: the relaxed minimum is concave in
  /// it.
  void bisect(size_t k, double scale) {
    double low = 0, high = multipliers[k] > 0 ? multipliers[k] * 2 : scale;
    multipliers[k] = 0;
    if (!exceeds(excess(k, tryMultipliers()), 0))
      return;
    for (int i = 0; i < 40; ++i, low = high, high *= 4) {
      multipliers[k] = high;
      if (!exceeds(excess(k, tryMultipliers()), 0))
        break;
    }
    for (int i = 0; i < 14; ++i) {
      multipliers[k] = (low + high) / 2;
      (exceeds(excess(k, tryMultipliers()), 0) ? low : high) = multipliers[k];
    }
    multipliers[k] = high;
  }

  void relax() {
    double seconds = 0;
    for (const AssignedRegion &region : p.regions)
      for (const RegionVariant &variant : region.variants)
        seconds = std::max(seconds, variant.seconds);
    for (int round = 0; round < (bounds.count() > 1 ? 3 : 1); ++round)
      for (size_t k = 0; k < bounds.count(); ++k)
        if (std::isfinite(bounds.limit(k)))
          bisect(k, seconds / std::max(bounds.limit(k), 1e-12));
    descend();
  }

  /// Subgradient steps for several bounds at once; their lengths shrink.
  void descend() {
    if (bounds.count() == 1)
      return;
    multipliers = bestMultipliers.empty() ? multipliers : bestMultipliers;
    for (int i = 1; i <= 60; ++i) {
      std::vector<int> found = tryMultipliers();
      double target = hasBest ? bestSeconds : lower * 1.05, length = 0;
      std::vector<double> slope;
      for (size_t k = 0; k < bounds.count(); ++k) {
        double over = std::isfinite(bounds.limit(k)) ? excess(k, found) : 0;
        slope.push_back(over < 0 && multipliers[k] == 0 ? 0 : over); // no multiplier is negative
        // Bounds have units of their own: each is measured by its limit.
        double relative = slope[k] / std::max(bounds.limit(k), 1e-12);
        length += relative * relative;
      }
      if (length == 0)
        break;
      double step = std::max(target - lower, 1e-4 * target) / (length * std::sqrt(double(i)));
      for (size_t k = 0; k < bounds.count(); ++k) {
        double limit = std::max(bounds.limit(k), 1e-12);
        multipliers[k] = std::max(0.0, multipliers[k] + step * slope[k] / (limit * limit));
      }
    }
  }

  double localSeconds(int region, const std::vector<int> &variants) const {
    double sum = chosen(p, variants, region).seconds;
    for (int i : touching[size_t(region)].edges)
      sum += edgeSeconds(p, p.edges[size_t(i)], variants);
    for (int i : touching[size_t(region)].flows)
      sum += flowSeconds(p, p.flows[size_t(i)], variants);
    return sum;
  }

  /// Single changes that save time within the bounds, until none does.
  void improve(std::vector<int> &variants) {
    if (!hasBest)
      return;
    std::vector<double> left;
    for (size_t k = 0; k < bounds.count(); ++k)
      left.push_back(-excess(k, variants));
    for (bool hasChanged = true; hasChanged;) {
      hasChanged = false;
      for (size_t r = 0; r < variants.size(); ++r) {
        double before = localSeconds(int(r), variants);
        int old = variants[r];
        for (int v = 0; v < int(p.regions[r].variants.size()); ++v) {
          variants[r] = v;
          double gain = before - localSeconds(int(r), variants);
          bool fits = gain > 1e-12 * before;
          for (size_t k = 0; fits && k < bounds.count(); ++k)
            fits = !exceeds(bounds.use(k, p.regions[r].variants[size_t(v)]) -
                                bounds.use(k, p.regions[r].variants[size_t(old)]),
                            left[k]);
          if (!fits)
            continue;
          for (size_t k = 0; k < bounds.count(); ++k)
            left[k] -= bounds.use(k, p.regions[r].variants[size_t(v)]) -
                       bounds.use(k, p.regions[r].variants[size_t(old)]);
          old = v;
          before -= gain;
          hasChanged = true;
        }
        variants[r] = old;
      }
    }
    consider(std::vector<int>(variants));
  }

  /// Branch and bound over the elimination's order with the multipliers of the best bound.
  void search() {
    if (!bestMultipliers.empty()) {
      multipliers = bestMultipliers;
      tryMultipliers();
    }
    double base = 0;
    for (size_t k = 0; k < bounds.count(); ++k)
      base -= multipliers[k] * bounds.limit(k);
    // What the regions not yet assigned use at least of each bound.
    const std::vector<int> &order = elimination.order();
    leastUse.assign(bounds.count(), std::vector<double>(order.size() + 1, 0));
    for (size_t k = 0; k < bounds.count(); ++k)
      for (size_t i = order.size(); i-- > 0;) {
        double least = std::numeric_limits<double>::infinity();
        for (const RegionVariant &variant : p.regions[size_t(order[i])].variants)
          least = std::min(least, bounds.use(k, variant));
        leastUse[k][i] = leastUse[k][i + 1] + least;
      }
    std::vector<int> variants(p.regions.size());
    std::vector<double> used(bounds.count());
    nodes = 0;
    descendFrom(0, lowerAtMultipliers(base), variants, used);
    isProven = nodes < kMaxNodes;
  }

  double lowerAtMultipliers(double base) { return elimination.run(relaxedCosts()) + base; }

  void descendFrom(size_t depth, double bound, std::vector<int> &variants, std::vector<double> &used) {
    if (++nodes >= kMaxNodes)
      return;
    const std::vector<int> &order = elimination.order();
    if (depth == order.size())
      return consider(variants);
    int region = order[depth];
    std::vector<std::pair<double, int>> ways;
    for (int v = 0; v < int(p.regions[size_t(region)].variants.size()); ++v) {
      variants[size_t(region)] = v;
      ways.push_back({elimination.rise(region, variants), v});
    }
    std::sort(ways.begin(), ways.end());
    for (auto [rise, v] : ways) {
      if (hasBest && bound + rise >= bestSeconds * (1 - 1e-12))
        break;
      const RegionVariant &variant = p.regions[size_t(region)].variants[size_t(v)];
      bool fits = true;
      for (size_t k = 0; k < bounds.count(); ++k) {
        used[k] += bounds.use(k, variant);
        fits &= !exceeds(used[k] + leastUse[k][depth + 1], bounds.limit(k));
      }
      variants[size_t(region)] = v;
      if (fits)
        descendFrom(depth + 1, bound + rise, variants, used);
      for (size_t k = 0; k < bounds.count(); ++k)
        used[k] -= bounds.use(k, variant);
    }
  }

  const AssignmentProblem &p;
  Bounds bounds;
  std::vector<double> multipliers, bestMultipliers;
  std::vector<Touching> touching;
  bool flowsAreExact = true, hasBest = false, isProven = false;
  Elimination elimination;
  std::vector<int> best;
  double bestSeconds = 0, lower = -std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> leastUse; // per bound and depth
  size_t nodes = 0;
};

} // namespace

AssignmentSolution evaluateAssignment(const AssignmentProblem &problem, const std::vector<int> &variants) {
  AssignmentSolution solution = summedAssignment(problem, variants);
  if (problem.overlaps)
    solution.seconds = Timeline(problem).end(variants);
  return solution;
}

AssignmentSolution solveAssignment(const AssignmentProblem &problem) {
  AssignmentSolution leastSum = Solver(problem).solve();
  return problem.overlaps ? endEarlier(problem, leastSum) : leastSum;
}

} // namespace dspark
