// The least sum of functions of a few discrete variables each, by bucket elimination (Dechter 1999). Where a
// table would become too large its bucket is split (mini-buckets), and the result is a lower bound. Messages
// are kept, so that a search can ask how much any partial assignment costs at least.
#pragma once
#include <cstddef>
#include <vector>

namespace dspark {

/// values[...] over the variables of `scope` (distinct), the last one varying fastest.
struct Factor {
  std::vector<int> scope;
  std::vector<double> values;
};

class Elimination {
public:
  /// `sizes`: how many values each variable has. The order is chosen once, by least degree.
  Elimination(std::vector<int> sizes, std::vector<Factor> factors, size_t maxTable = 1 << 14);

  /// Adds unary[v][x] to the fixed factors and eliminates; returns the lower bound. Equal to the minimum
  /// where isExact().
  double run(const std::vector<std::vector<double>> &unary);
  bool isExact() const { return !wasSplit; }

  /// Variables in the order in which a search assigns them.
  const std::vector<int> &order() const { return assignOrder; }
  /// How much the bound rises when `variable`, the next in order(), gets assignment[variable], all earlier
  /// ones being set.
  double rise(int variable, const std::vector<int> &assignment) const;
  /// The assignment that takes the least rise at each step: the minimum where isExact().
  std::vector<int> greedy() const;

private:
  struct Table {
    std::vector<int> scope; // ascending in elimination order
    std::vector<double> values;
    double at(const std::vector<int> &assignment, const std::vector<int> &sizes) const;
  };
  struct MiniBucket {
    std::vector<int> fixed;    // indices into `fixedTables`
    std::vector<int> incoming; // indices into `messages`
    std::vector<int> scope;    // without the variable
    int message = -1;          // its own
  };
  void chooseOrder(const std::vector<Factor> &factors);
  void planBuckets(size_t maxTable);
  void fill(int variable, const MiniBucket &mini, bool takesUnary, const std::vector<double> &unary);

  std::vector<int> sizes, assignOrder, position;
  std::vector<Table> fixedTables, messages;
  std::vector<std::vector<MiniBucket>> buckets; // per variable; never empty
  std::vector<std::vector<double>> unaries;
  bool wasSplit = false;
};

} // namespace dspark
