// A language model small enough to know the probability of every continuation, decoding with and without
// drafts, and the test that tells whether what came out is distributed as the model says.
#pragma once
#include "runtime/llm/speculation/Verification.h"
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <map>

namespace dspark::llm::toy {

using Tokens = std::vector<int32_t>;

/// A number in [0, 1) that depends on nothing but its keys (splitmix64's finaliser over each).
inline double keyed(std::initializer_list<uint64_t> keys) {
  uint64_t z = 0x9e3779b97f4a7c15;
  for (uint64_t key : keys) {
    z = (z ^ key) + 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
  }
  return double(z >> 11) * 0x1p-53;
}

inline int32_t drawByCumulation(const Distribution &distribution, double uniform) {
  double sum = 0;
  for (size_t i = 0; i < distribution.tokens.size(); ++i)
    if (uniform < (sum += distribution.probabilities[i]))
      return distribution.tokens[i];
  return distribution.tokens.back();
}

inline Distribution greedy(const Distribution &distribution) {
  size_t best = 0;
  for (size_t i = 1; i < distribution.tokens.size(); ++i)
    if (distribution.probabilities[i] > distribution.probabilities[best])
      best = i;
  return {{distribution.tokens[best]}, {1.0f}};
}

/// The next token depends on the last two by a random table; `variant` makes another model of the same kind.
struct Model {
  int32_t vocabulary = 3;
  uint64_t variant = 0;
  double sharpness = 2; // of the table's logits
  double topP = 1;
  mutable std::vector<Distribution> known = {}; // by the last two tokens, once asked for

  const Distribution &next(std::span<const int32_t> history) const {
    const auto back = [&](size_t i) { return i < history.size() ? history[history.size() - 1 - i] + 1 : 0; };
    known.resize(size_t((vocabulary + 1) * (vocabulary + 1)));
    Distribution &distribution = known[size_t(back(0) * (vocabulary + 1) + back(1))];
    if (distribution.tokens.empty())
      distribution = compute(back);
    return distribution;
  }

  template <typename Back> Distribution compute(Back back) const {
    std::vector<std::pair<double, int32_t>> mass;
    double sum = 0;
    for (int32_t v = 0; v < vocabulary; ++v) {
      const double logit = keyed({variant, uint64_t(back(0)), uint64_t(back(1)), uint64_t(v)});
      sum += mass.emplace_back(std::exp(sharpness * logit), v).first;
    }
    std::sort(mass.rbegin(), mass.rend());
    double kept = 0;
    size_t count = 0;
    while (count < mass.size() && kept < topP * sum)
      kept += mass[count++].first;
    mass.resize(count);
    std::sort(mass.begin(), mass.end(), [](auto &a, auto &b) { return a.second < b.second; });
    Distribution distribution;
    for (const auto &[weight, token] : mass) {
      distribution.tokens.push_back(token);
      distribution.probabilities.push_back(float(weight / kept));
    }
    return distribution;
  }
};

enum Purpose : uint64_t { kToken, kAcceptance, kDrafting };

/// One sequence of the model, decoded at temperature 1 or greedily.
class Sequence : public VerifiedSequence {
public:
  Sequence(const Model &model, uint64_t seed, Tokens prompt = {}) : model(model), seed(seed), tokens(prompt) {
    start = tokens.size();
  }

  StatusOr<int32_t> drawn(size_t row) override {
    DSPARK_ASSIGN_OR_RETURN(const Distribution *p, distribution(row));
    return drawnFrom(*p, row);
  }
  StatusOr<const Distribution *> distribution(size_t row) override {
    EXPECT_EQ(row, size_t(tokens.size() - base)) << "rows are asked for once their drafts were accepted";
    current = model.next(tokens);
    if (isGreedy)
      current = greedy(current);
    return &current;
  }
  int32_t drawnFrom(const Distribution &p, size_t row) override {
    return drawByCumulation(p, keyed({seed, base + row, kToken}));
  }
  double acceptance(size_t row) override { return keyed({seed, base + row, kAcceptance}); }
  bool commit(int32_t token) override {
    tokens.push_back(token);
    return token != stopToken && tokens.size() - start < limit;
  }

  Tokens output() const { return Tokens(tokens.begin() + long(start), tokens.end()); }
  StatusOr<Verdict> step(const Draft &draft, size_t length) {
    base = tokens.size();
    return verify(draft, length, *this);
  }

  const Model &model;
  uint64_t seed;
  Tokens tokens;
  bool isGreedy = false;
  int32_t stopToken = -1;
  size_t limit = 1u << 20;

private:
  Distribution current;
  size_t base = 0, start = 0;
};

/// Drafts `count` tokens by another model: drawn, with their distributions, or its likeliest ones.
inline Draft draftBy(const Model &model, Tokens history, uint64_t seed, int32_t count, bool isDrawn) {
  Draft draft;
  for (int32_t i = 0; i < count; ++i) {
    const Distribution q = model.next(history);
    const int32_t token = drawByCumulation(isDrawn ? q : greedy(q), keyed({seed, history.size(), kDrafting}));
    draft.tokens.push_back(token);
    if (isDrawn)
      draft.drawnFrom.push_back(q);
    history.push_back(token);
  }
  return draft;
}

/// How far counts of outcomes are from what probabilities say, in standard deviations (chi-square, brought to
/// a normal variable by Wilson and Hilferty's cube root). Above 5 has a chance below 1e-6.
class Histogram {
public:
  void add(const Tokens &continuation) {
    ++counts[continuation];
    ++total;
  }
  double deviation(const std::function<double(const Tokens &)> &probability,
                   const std::vector<Tokens> &outcomes) const {
    double chi2 = 0, rare = 0;
    int64_t rareCount = 0, cells = 0;
    for (const Tokens &outcome : outcomes) {
      const double expected = probability(outcome) * double(total);
      const auto at = counts.find(outcome);
      const int64_t found = at == counts.end() ? 0 : at->second;
      if (expected < 8) { // pooled: the approximation needs a few per cell
        rare += expected;
        rareCount += found;
        continue;
      }
      chi2 += (double(found) - expected) * (double(found) - expected) / expected;
      ++cells;
    }
    if (rare >= 8) {
      chi2 += (double(rareCount) - rare) * (double(rareCount) - rare) / rare;
      ++cells;
    } else if (double(rareCount) > rare + 8 * std::sqrt(rare + 1)) {
      return 1e9; // what can hardly happen did
    }
    const double k = double(cells - 1), spread = 2 / (9 * k);
    return (std::cbrt(chi2 / k) - (1 - spread)) / std::sqrt(spread);
  }

private:
  std::map<Tokens, int64_t> counts;
  int64_t total = 0;
};

inline double deviationFrom(const Model &model, const Tokens &prompt, size_t length,
                            const Histogram &histogram) {
  std::vector<Tokens> outcomes{{}};
  for (size_t i = 0; i < length; ++i) {
    std::vector<Tokens> longer;
    for (const Tokens &outcome : outcomes)
      for (int32_t v = 0; v < model.vocabulary; ++v) {
        longer.push_back(outcome);
        longer.back().push_back(v);
      }
    outcomes = std::move(longer);
  }
  return histogram.deviation(
      [&](const Tokens &outcome) {
        Tokens history = prompt;
        double probability = 1;
        for (int32_t token : outcome) {
          probability *= probabilityOf(model.next(history), token);
          history.push_back(token);
        }
        return probability;
      },
      outcomes);
}

} // namespace dspark::llm::toy
