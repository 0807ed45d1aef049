#include "planning/Elimination.h"
#include <algorithm>
#include <limits>
#include <set>

namespace dspark {

double Elimination::Table::at(const std::vector<int> &assignment, const std::vector<int> &sizes) const {
  size_t index = 0;
  for (int v : scope)
    index = index * size_t(sizes[size_t(v)]) + size_t(assignment[size_t(v)]);
  return values[index];
}

Elimination::Elimination(std::vector<int> variableSizes, std::vector<Factor> factors, size_t maxTable)
    : sizes(std::move(variableSizes)), position(sizes.size()), buckets(sizes.size()) {
  chooseOrder(factors);
  for (Factor &factor : factors)
    fixedTables.push_back({std::move(factor.scope), std::move(factor.values)});
  planBuckets(maxTable);
}

// Least degree first, in the graph that grows as neighbours of eliminated variables are joined.
void Elimination::chooseOrder(const std::vector<Factor> &factors) {
  std::vector<std::set<int>> neighbours(sizes.size());
  for (const Factor &factor : factors)
    for (int a : factor.scope)
      for (int b : factor.scope)
        if (a != b)
          neighbours[size_t(a)].insert(b);
  std::set<std::pair<size_t, int>> queue;
  for (size_t v = 0; v < sizes.size(); ++v)
    queue.insert({neighbours[v].size(), int(v)});
  std::vector<int> eliminated;
  while (!queue.empty()) {
    int v = queue.begin()->second;
    queue.erase(queue.begin());
    eliminated.push_back(v);
    std::set<int> around = std::move(neighbours[size_t(v)]);
    // Joining all of many neighbours would cost more than it tells: their table is split anyway.
    bool joins = around.size() <= 12;
    for (int a : around) {
      std::set<int> &mine = neighbours[size_t(a)];
      queue.erase({mine.size(), a});
      mine.erase(v);
      if (joins)
        for (int b : around)
          if (b != a)
            mine.insert(b);
      queue.insert({mine.size(), a});
    }
  }
  for (size_t i = 0; i < eliminated.size(); ++i)
    position[size_t(eliminated[i])] = int(i);
  assignOrder.assign(eliminated.rbegin(), eliminated.rend());
}

// Each table belongs to the bucket of the variable of its scope that is eliminated first; what a bucket's
// minimum depends on is known without any value.
void Elimination::planBuckets(size_t maxTable) {
  auto first = [&](const std::vector<int> &scope) {
    return *std::min_element(scope.begin(), scope.end(),
                             [&](int a, int b) { return position[size_t(a)] < position[size_t(b)]; });
  };
  struct Member {
    bool isMessage;
    int index;
  };
  std::vector<std::vector<Member>> members(sizes.size());
  for (size_t i = 0; i < fixedTables.size(); ++i)
    if (!fixedTables[i].scope.empty())
      members[size_t(first(fixedTables[i].scope))].push_back({false, int(i)});
  for (size_t step = assignOrder.size(); step-- > 0;) {
    int v = assignOrder[step];
    std::vector<MiniBucket> &minis = buckets[size_t(v)];
    std::vector<std::set<int>> scopes;
    auto tableOf = [&](const std::set<int> &scope) {
      double product = 1;
      for (int u : scope)
        product *= sizes[size_t(u)];
      return product * sizes[size_t(v)];
    };
    for (Member member : members[size_t(v)]) {
      const std::vector<int> &scope = (member.isMessage ? messages : fixedTables)[size_t(member.index)].scope;
      size_t place = 0;
      std::set<int> joined;
      for (; place < minis.size(); ++place) {
        joined = scopes[place];
        joined.insert(scope.begin(), scope.end());
        joined.erase(v);
        if (tableOf(joined) <= double(maxTable))
          break;
      }
      if (place == minis.size()) {
        wasSplit |= place > 0;
        joined = {scope.begin(), scope.end()};
        joined.erase(v);
        minis.emplace_back();
        scopes.emplace_back();
      }
      scopes[place] = std::move(joined);
      (member.isMessage ? minis[place].incoming : minis[place].fixed).push_back(member.index);
    }
    if (minis.empty()) {
      minis.emplace_back();
      scopes.emplace_back();
    }
    for (size_t i = 0; i < minis.size(); ++i) {
      minis[i].scope.assign(scopes[i].begin(), scopes[i].end());
      minis[i].message = int(messages.size());
      size_t entries = 1;
      for (int u : minis[i].scope)
        entries *= size_t(sizes[size_t(u)]);
      messages.push_back({minis[i].scope, std::vector<double>(entries)});
      if (!minis[i].scope.empty())
        members[size_t(first(minis[i].scope))].push_back({true, minis[i].message});
    }
  }
}

// message(scope) = least over the variable of the sum of the mini-bucket's tables.
void Elimination::fill(int variable, const MiniBucket &mini, bool takesUnary,
                       const std::vector<double> &unary) {
  // Strides of each member along the scope's variables and the eliminated one (last).
  struct Stride {
    const double *values;
    std::vector<size_t> along;
    size_t own = 0;
  };
  std::vector<Stride> strides;
  auto add = [&](const Table &table) {
    Stride s{table.values.data(), std::vector<size_t>(mini.scope.size()), 0};
    size_t stride = 1;
    for (size_t i = table.scope.size(); i-- > 0; stride *= size_t(sizes[size_t(table.scope[i])])) {
      if (table.scope[i] == variable)
        s.own = stride;
      else
        s.along[size_t(std::lower_bound(mini.scope.begin(), mini.scope.end(), table.scope[i]) -
                       mini.scope.begin())] = stride;
    }
    strides.push_back(std::move(s));
  };
  for (int i : mini.fixed)
    add(fixedTables[size_t(i)]);
  for (int i : mini.incoming)
    add(messages[size_t(i)]);
  std::vector<int> digits(mini.scope.size());
  std::vector<double> &out = messages[size_t(mini.message)].values;
  for (size_t entry = 0; entry < out.size(); ++entry) {
    double least = std::numeric_limits<double>::infinity();
    for (int x = 0; x < sizes[size_t(variable)]; ++x) {
      double sum = takesUnary ? unary[size_t(x)] : 0;
      for (const Stride &s : strides)
        sum += s.values[size_t(x) * s.own];
      least = std::min(least, sum);
    }
    out[entry] = least;
    for (size_t d = digits.size(); d-- > 0;) {
      for (Stride &s : strides)
        s.values += s.along[d];
      if (++digits[d] < sizes[size_t(mini.scope[d])])
        break;
      for (Stride &s : strides)
        s.values -= s.along[d] * size_t(digits[d]);
      digits[d] = 0;
    }
  }
}

double Elimination::run(const std::vector<std::vector<double>> &unary) {
  unaries = unary;
  double bound = 0;
  for (const Table &table : fixedTables)
    if (table.scope.empty())
      bound += table.values[0];
  for (size_t step = assignOrder.size(); step-- > 0;) {
    int v = assignOrder[step];
    const std::vector<MiniBucket> &minis = buckets[size_t(v)];
    for (size_t i = 0; i < minis.size(); ++i) {
      fill(v, minis[i], i == 0, unaries[size_t(v)]);
      if (minis[i].scope.empty())
        bound += messages[size_t(minis[i].message)].values[0];
    }
  }
  return bound;
}

double Elimination::rise(int variable, const std::vector<int> &assignment) const {
  double sum = unaries[size_t(variable)][size_t(assignment[size_t(variable)])];
  for (const MiniBucket &mini : buckets[size_t(variable)]) {
    for (int i : mini.fixed)
      sum += fixedTables[size_t(i)].at(assignment, sizes);
    for (int i : mini.incoming)
      sum += messages[size_t(i)].at(assignment, sizes);
    sum -= messages[size_t(mini.message)].at(assignment, sizes);
  }
  return sum;
}

std::vector<int> Elimination::greedy() const {
  std::vector<int> assignment(sizes.size());
  for (int v : assignOrder) {
    int best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (int x = 0; x < sizes[size_t(v)]; ++x) {
      assignment[size_t(v)] = x;
      double value = rise(v, assignment);
      if (value < least) {
        least = value;
        best = x;
      }
    }
    assignment[size_t(v)] = best;
  }
  return assignment;
}

} // namespace dspark
