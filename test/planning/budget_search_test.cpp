// Budgets are found for plans whose errors are not what was expected of them.
#include "planning/BudgetSearch.h"
#include <algorithm>
#include <gtest/gtest.h>

namespace dspark {
namespace {

// Tries `plan` (the error of the plan within a budget) until it is near the target; the number of tries.
int triesUntilNear(double target, double first, auto plan, int most = 20) {
  BudgetSearch search(target, first);
  for (int tries = 1; tries <= most; ++tries) {
    double found = plan(search.budget());
    if (search.isNear(found))
      return tries;
    search.tell(found);
  }
  return most + 1;
}

// The second budget is right where errors are a multiple of what is expected, up to the longest step.
TEST(BudgetSearch, OneTryTellsTheFactor) {
  for (double factor : {0.13, 0.3, 0.7, 1.5, 3.0, 7.0})
    EXPECT_LE(triesUntilNear(1e-4, 1e-4, [&](double budget) { return factor * budget; }), 2) << factor;
  EXPECT_EQ(triesUntilNear(1e-4, 1e-4, [](double budget) { return 0.9 * budget; }), 1);
}

// Errors that grow faster or slower than expected.
TEST(BudgetSearch, FindsTheBudgetOfCurves) {
  for (double power : {0.5, 0.8, 1.3, 2.0})
    for (double factor : {1e-3, 0.1, 10.0, 1e3}) {
      auto plan = [&](double budget) { return factor * std::pow(budget / 1e-4, power) * 1e-4; };
      EXPECT_LE(triesUntilNear(1e-4, 1e-4, plan), 12) << power << " " << factor;
    }
}

// Where no plan comes near (regions are taken whole), the largest that keeps the bound is closed in on.
TEST(BudgetSearch, ClosesInOnAJump) {
  BudgetSearch search(1, 1);
  double best = 0;
  for (int i = 0; i < 12; ++i) {
    double budget = search.budget(), found = budget < 3 ? 0.1 : 2;
    best = found <= 1 ? std::max(best, budget) : best;
    search.tell(found);
  }
  EXPECT_GT(best, 2.9);
  EXPECT_LT(best, 3);
}

// Plans with broken outputs make budgets smaller, such without any error larger.
TEST(BudgetSearch, BrokenOutputsAndNoError) {
  for (double found : {double(INFINITY), double(NAN)}) {
    BudgetSearch search(1, 1);
    for (int i = 0; i < 5; ++i)
      search.tell(found);
    EXPECT_LT(search.budget(), 1e-3);
    EXPECT_FALSE(search.isNear(found));
  }
  BudgetSearch search(1, 1);
  search.tell(0);
  EXPECT_DOUBLE_EQ(search.budget(), 8);
}

} // namespace
} // namespace dspark
