// tree_ensemble: each row walks every tree to a leaf; the leaves' weights are aggregated per target and
// transformed. Phase 0 finds where the members of each BRANCH_MEMBER node start, phase 1 walks; tiles are
// blocks of rows.
#include "kernels/common/element.h"
#include "kernels/ml/ml.h"
#include <algorithm>
#include <numbers>

namespace dspark {
namespace {

constexpr int64_t kBlock = 16;

enum class Branch : uint8_t { LessEqual, Less, GreaterEqual, Greater, Equal, NotEqual, Member };
enum class Aggregate : uint8_t { Average, Sum, Min, Max };
enum class Transform : uint8_t { None, Softmax, Logistic, SoftmaxZero, Probit };

struct EnsembleState {
  int64_t rows, features, targets;
  Aggregate aggregate;
  Transform transform;
};

struct Trees {
  std::span<const int64_t> modes, features, trueIds, falseIds, trueLeaves, falseLeaves, tracksTrue, targets,
      roots;
  std::span<const double> splits, weights, members;

  explicit Trees(Attrs attrs)
      : modes(attrs.ints("nodes_modes")), features(attrs.ints("nodes_featureids")),
        trueIds(attrs.ints("nodes_truenodeids")), falseIds(attrs.ints("nodes_falsenodeids")),
        trueLeaves(attrs.ints("nodes_trueleafs")), falseLeaves(attrs.ints("nodes_falseleafs")),
        tracksTrue(attrs.ints("nodes_missing_value_tracks_true")), targets(attrs.ints("leaf_targetids")),
        roots(attrs.ints("tree_roots")), splits(attrs.floats("nodes_splits")),
        weights(attrs.floats("leaf_weights")), members(attrs.floats("membership_values")) {}

  bool takesTrue(size_t node, double x, int64_t firstMember) const {
    double split = splits[node];
    switch (Branch(modes[node])) {
    case Branch::LessEqual:
      return x <= split;
    case Branch::Less:
      return x < split;
    case Branch::GreaterEqual:
      return x >= split;
    case Branch::Greater:
      return x > split;
    case Branch::Equal:
      return x == split;
    case Branch::NotEqual:
      return x != split;
    case Branch::Member:
      for (size_t i = size_t(firstMember); i < members.size() && !std::isnan(members[i]); ++i)
        if (members[i] == x)
          return true;
      return false;
    }
    return false;
  }

  // The leaf that row x reaches, or -1 if the nodes form a cycle.
  template <typename T> int64_t leafOf(int64_t root, const T *x, const int64_t *firstMember) const {
    int64_t node = root;
    for (size_t steps = 0; steps < modes.size(); ++steps) {
      auto n = size_t(node);
      double value = double(x[features[n]]);
      bool isTrue = takesTrue(n, value, firstMember[n]);
      if (std::isnan(value) && !tracksTrue.empty() && tracksTrue[n])
        isTrue = true;
      node = isTrue ? trueIds[n] : falseIds[n];
      if (isTrue ? trueLeaves[n] : falseLeaves[n])
        return node;
    }
    return -1;
  }
};

// Winitzki's approximation of the inverse error function, which ai.onnx.ml's PROBIT is defined by.
double probit(double p) {
  double x = 2 * p - 1, log = std::log((1 - x) * (1 + x));
  double v = 2 / (std::numbers::pi * 0.147) + 0.5 * log;
  return std::numbers::sqrt2 * std::copysign(std::sqrt(-v + std::sqrt(v * v - log / 0.147)), x);
}

void softmax(double *y, int64_t n, bool skipsZeros) {
  double top = *std::max_element(y, y + n), total = 0;
  auto counts = [&](double v) { return !skipsZeros || std::fabs(v) > 1e-7; };
  for (int64_t i = 0; i < n; ++i)
    total += y[i] = counts(y[i]) ? std::exp(y[i] - top) : y[i] * std::exp(-top);
  for (int64_t i = 0; i < n; ++i)
    y[i] = total == 0 ? 0.5 : y[i] / total;
}

void transformRow(Transform transform, double *y, int64_t n) {
  if (transform == Transform::Softmax || transform == Transform::SoftmaxZero)
    return softmax(y, n, transform == Transform::SoftmaxZero);
  for (int64_t i = 0; i < n; ++i)
    y[i] = transform == Transform::Logistic ? 1 / (1 + std::exp(-y[i]))
           : transform == Transform::Probit ? probit(y[i])
                                            : y[i];
}

void addLeaf(Aggregate aggregate, double &y, double weight, size_t trees, bool isFirst) {
  switch (aggregate) {
  case Aggregate::Average:
    y += weight / double(trees);
    return;
  case Aggregate::Sum:
    y += weight;
    return;
  case Aggregate::Min:
    y = isFirst ? weight : std::min(y, weight);
    return;
  case Aggregate::Max:
    y = isFirst ? weight : std::max(y, weight);
    return;
  }
}

} // namespace

void prepareTreeEnsemble(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<EnsembleState>();
  s.rows = call.in[0].dim(0), s.features = call.in[0].dim(1), s.targets = call.out[0].dim(1);
  s.aggregate = Aggregate(call.attrs.i("aggregate_function", 1));
  s.transform = Transform(call.attrs.i("post_transform", 0));
  work.phases = 2;
  work.tiles[0] = 1;
  work.tiles[1] = uint32_t((s.rows + kBlock - 1) / kBlock);
  work.scratchShared = call.attrs.ints("nodes_modes").size() * sizeof(int64_t);
  work.scratchPerThread = size_t(s.targets) * (sizeof(double) + 1);
}

void runTreeEnsemble(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<EnsembleState>();
  Trees trees(call.attrs);
  auto *firstMember = reinterpret_cast<int64_t *>(part.shared);
  if (part.phase == 0) {
    int64_t at = 0;
    for (size_t n = 0; n < trees.modes.size(); ++n) {
      firstMember[n] = at;
      if (Branch(trees.modes[n]) == Branch::Member) {
        while (size_t(at) < trees.members.size() && !std::isnan(trees.members[size_t(at)]))
          ++at;
        ++at;
      }
    }
    return;
  }
  auto *sums = reinterpret_cast<double *>(part.scratch);
  auto *isSet = reinterpret_cast<bool *>(sums + s.targets);
  dispatchFloat(call.in[0].type, [&]<typename T>() {
    for (int64_t row = part.begin * kBlock, end = std::min(s.rows, int64_t(part.end) * kBlock); row < end;
         ++row) {
      std::fill(sums, sums + s.targets, 0.0);
      std::fill(isSet, isSet + s.targets, false);
      for (int64_t root : trees.roots) {
        int64_t leaf = trees.leafOf(root, call.in[0].as<const T>() + row * s.features, firstMember);
        if (leaf < 0)
          continue;
        int64_t target = trees.targets[size_t(leaf)];
        addLeaf(s.aggregate, sums[target], trees.weights[size_t(leaf)], trees.roots.size(), !isSet[target]);
        isSet[target] = true;
      }
      transformRow(s.transform, sums, s.targets);
      for (int64_t i = 0; i < s.targets; ++i)
        call.out[0].as<T>()[row * s.targets + i] = fromReal<T>(sums[i]);
    }
  });
}

} // namespace dspark
