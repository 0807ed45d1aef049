// Which budget for expected errors makes a plan whose true error comes near its bound. Expectations add up
// shares as if roundings were independent and no rounding met another; what a plan turns out to have is
// another number, about a constant times what was expected. So the first plan tells that constant; from a
// plan that kept the bound and one that did not the next budget is interpolated between theirs, in
// logarithms.
#pragma once
#include <cmath>

namespace dspark {

class BudgetSearch {
public:
  /// `target`: the bound, in the measure that adds up (squares of relative errors); `first`: the budget to
  /// begin with, above 0.
  BudgetSearch(double target, double first) : target(target), current(first) {}

  double budget() const { return current; }
  /// What the plan within budget() turned out to have: any number, infinite or NaN where outputs are broken.
  void tell(double found);
  /// Whether that plan kept the bound and used so much of it that more is not worth another plan.
  bool isNear(double found) const;

private:
  struct Tried {
    double budget, found;
  };
  double between() const;

  double target, current;
  Tried low = {0, 0}, high = {INFINITY, INFINITY}; // the nearest that kept the bound, and that did not
};

} // namespace dspark
