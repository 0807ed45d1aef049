// ai.onnx.ml: TreeEnsembleRegressor and -Classifier. Their nodes, named by tree and number, become those of
// tree_ensemble, which here tells which leaf each tree ends in; a leaf's weights, one per target, are a row
// of a table.
//
//   x [N, F] -> leaves [N, trees] -> weights [N, trees, targets] -> aggregated [N, targets]
#include "frontends/onnx/ops/MlScores.h"
#include <algorithm>
#include <map>

namespace dspark::onnx {
namespace {

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr std::string_view kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                       "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};

using NodeName = std::pair<int64_t, int64_t>; // tree, number in it

struct Forest {
  std::vector<int64_t> modes, features, trueIds, falseIds, trueLeaves, falseLeaves, tracks, roots, leafTrees;
  std::vector<double> splits;
  std::map<NodeName, int64_t> leaves; // its row in the table of weights
};

/// Attributes of the operator's nodes, checked to be of one length.
struct NodeLists {
  std::vector<int64_t> trees, ids, features, trueIds, falseIds, tracks;
  std::vector<double> values;
  std::vector<std::string> modes;

  explicit NodeLists(Node &n)
      : trees(n.ints("nodes_treeids")), ids(n.ints("nodes_nodeids")), features(n.ints("nodes_featureids")),
        trueIds(n.ints("nodes_truenodeids")), falseIds(n.ints("nodes_falsenodeids")),
        tracks(n.ints("nodes_missing_value_tracks_true")), values(n.floats("nodes_values")),
        modes(n.strings("nodes_modes")) {
    size_t count = modes.size();
    bool same = count && trees.size() == count && ids.size() == count && features.size() == count &&
                trueIds.size() == count && falseIds.size() == count && values.size() == count &&
                (tracks.empty() || tracks.size() == count);
    if (!same)
      n.invalid("the lists of nodes_ attributes differ in length or are empty");
  }
};

/// Numbers branches and leaves in the order of the lists.
bool readForest(Node &n, Forest &forest) {
  NodeLists lists(n);
  if (n.failed())
    return false;
  std::map<NodeName, int64_t> branches;
  std::map<int64_t, int64_t> treeOf; // by name, in order of appearance
  std::map<NodeName, bool> isChild;
  for (size_t i = 0; i < lists.modes.size(); ++i) {
    NodeName name(lists.trees[i], lists.ids[i]);
    treeOf.try_emplace(name.first, int64_t(treeOf.size()));
    bool isNew = lists.modes[i] == "LEAF"
                     ? forest.leaves.try_emplace(name, int64_t(forest.leaves.size())).second
                     : branches.try_emplace(name, int64_t(branches.size())).second;
    if (!isNew) {
      n.invalid("node " + std::to_string(name.second) + " of tree " + std::to_string(name.first) +
                " is there twice");
      return false;
    }
    if (lists.modes[i] == "LEAF")
      forest.leafTrees.push_back(treeOf[name.first]);
    else
      isChild[{name.first, lists.trueIds[i]}] = isChild[{name.first, lists.falseIds[i]}] = true;
  }
  forest.roots.assign(treeOf.size(), -1);
  auto child = [&](int64_t tree, int64_t id, std::vector<int64_t> &ids, std::vector<int64_t> &isLeaf) {
    NodeName name(tree, id);
    auto branch = branches.find(name), leaf = forest.leaves.find(name);
    if (branch == branches.end() && leaf == forest.leaves.end()) {
      n.invalid("tree " + std::to_string(tree) + " has no node " + std::to_string(id));
      return false;
    }
    isLeaf.push_back(branch == branches.end());
    ids.push_back(branch == branches.end() ? leaf->second : branch->second);
    return true;
  };
  for (size_t i = 0; i < lists.modes.size(); ++i) {
    int64_t tree = lists.trees[i];
    if (lists.modes[i] == "LEAF")
      continue;
    const auto *mode = std::find(std::begin(kModes), std::end(kModes), lists.modes[i]);
    if (mode == std::end(kModes)) {
      n.invalid("nodes_modes has '" + lists.modes[i] + "'");
      return false;
    }
    if (!isChild.contains({tree, lists.ids[i]}))
      forest.roots[size_t(treeOf[tree])] = int64_t(forest.modes.size());
    forest.modes.push_back(mode - std::begin(kModes));
    forest.features.push_back(lists.features[i]);
    forest.splits.push_back(lists.values[i]);
    forest.tracks.push_back(lists.tracks.empty() ? 0 : lists.tracks[i]);
    if (!child(tree, lists.trueIds[i], forest.trueIds, forest.trueLeaves) ||
        !child(tree, lists.falseIds[i], forest.falseIds, forest.falseLeaves))
      return false;
  }
  // A tree of one leaf becomes a branch with that leaf on both sides.
  for (const auto &[name, leaf] : forest.leaves) {
    int64_t &root = forest.roots[size_t(treeOf[name.first])];
    if (root >= 0)
      continue;
    root = int64_t(forest.modes.size());
    for (auto *list : {&forest.modes, &forest.features, &forest.tracks})
      list->push_back(0);
    forest.splits.push_back(0);
    for (auto *list : {&forest.trueIds, &forest.falseIds})
      list->push_back(leaf);
    for (auto *list : {&forest.trueLeaves, &forest.falseLeaves})
      list->push_back(1);
  }
  for (int64_t root : forest.roots)
    if (root < 0) {
      n.invalid("a tree has no root");
      return false;
    }
  return true;
}

/// [N, trees]: which leaf each tree ends in. As floats on the way: exact up to 2^24 leaves.
mlir::Value leavesOf(Node &n, const Forest &forest, mlir::Value x) {
  std::vector<double> numbers(forest.leafTrees.size());
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = double(i);
  mlir::Value found =
      n.one("tree_ensemble", {x},
            {n.attr("aggregate_function", int64_t(1)), n.attr("n_targets", int64_t(forest.roots.size())),
             n.attr("leaf_targetids", forest.leafTrees), n.attr("leaf_weights", numbers),
             n.attr("nodes_modes", forest.modes), n.attr("nodes_featureids", forest.features),
             n.attr("nodes_splits", forest.splits), n.attr("nodes_truenodeids", forest.trueIds),
             n.attr("nodes_falsenodeids", forest.falseIds), n.attr("nodes_trueleafs", forest.trueLeaves),
             n.attr("nodes_falseleafs", forest.falseLeaves),
             n.attr("nodes_missing_value_tracks_true", forest.tracks), n.attr("tree_roots", forest.roots)});
  return n.cast(found, DType::I64);
}

/// Scores [N, targets] before base values; `side` is target or class.
mlir::Value aggregate(Node &n, const std::string &side, int64_t targets, bool &isPositive) {
  std::vector<int64_t> trees = n.ints(side + "_treeids"), nodes = n.ints(side + "_nodeids"),
                       ids = n.ints(side + "_ids");
  std::vector<double> weights = n.floats(side + "_weights");
  Forest forest;
  if (!readForest(n, forest))
    return {};
  if (trees.size() != ids.size() || nodes.size() != ids.size() || weights.size() != ids.size() ||
      targets < 1 || forest.leaves.size() >= size_t(1) << 24) {
    n.invalid("the lists of " + side + "_ attributes differ in length, or there are 2^24 leaves or more");
    return {};
  }
  if (forest.leaves.size() > (size_t(1) << 28) / size_t(targets)) {
    n.unsupported("more than 2^28 weights of leaves are not supported");
    return {};
  }
  std::vector<double> table(forest.leaves.size() * size_t(targets), 0.0);
  for (size_t i = 0; i < ids.size(); ++i) {
    auto leaf = forest.leaves.find({trees[i], nodes[i]});
    if (leaf == forest.leaves.end() || ids[i] < 0 || ids[i] >= targets) {
      n.invalid("a weight is of target " + std::to_string(ids[i]) + " and node " + std::to_string(nodes[i]) +
                " of tree " + std::to_string(trees[i]) + "; expected a leaf and less than " +
                std::to_string(targets) + " targets");
      return {};
    }
    table[size_t(leaf->second * targets + ids[i])] += weights[i];
    isPositive &= weights[i] >= 0;
  }
  std::string function = n.s("aggregate_function", "SUM");
  const char *kind = function == "SUM"       ? "sum"
                     : function == "AVERAGE" ? "mean"
                     : function == "MIN"     ? "min"
                     : function == "MAX"     ? "max"
                                             : nullptr;
  if (!kind) {
    n.invalid("aggregate_function is '" + function + "'; expected SUM, AVERAGE, MIN or MAX");
    return {};
  }
  if (kind[0] == 'm' && kind[1] != 'e' && ids.size() != table.size()) {
    n.unsupported("aggregate_function " + function + " with leaves that lack a target is not supported");
    return {};
  }
  mlir::Value x = n.in(0);
  if (n.type(x) != DType::F32 && n.type(x) != DType::F64)
    x = n.cast(x, DType::F32);
  mlir::Value found =
      n.one("gather", {matrix(n, table, int64_t(forest.leaves.size())), leavesOf(n, forest, x)});
  return n.reduce(kind, found, {1}, false);
}

mlir::Value withBase(Node &n, mlir::Value scores, int64_t targets) {
  std::vector<double> base = n.floats("base_values");
  if (base.empty())
    return scores;
  if (base.size() != size_t(targets) && base.size() != 1) {
    n.invalid("base_values has " + std::to_string(base.size()) + " numbers; expected " +
              std::to_string(targets));
    return {};
  }
  return n.binary("add", scores, n.floatList(base));
}

void buildRegressor(Node &n) {
  bool isPositive = true;
  int64_t targets = n.i("n_targets", 1);
  mlir::Value scores = aggregate(n, "target", targets, isPositive);
  if (!n.failed())
    scores = withBase(n, scores, targets);
  if (!n.failed())
    n.out(0, postTransform(n, scores));
}

/// [N] of 0 and 1: whether scores [N, 1] of the second of two labels are above a limit.
mlir::Value isSecond(Node &n, mlir::Value scores, double limit) {
  mlir::Value isAbove = n.compare("gt", scores, n.scalarLike(scores, limit));
  return n.cast(n.one("squeeze", {isAbove, n.list({1})}), DType::I64);
}

/// Two labels and weights for one of them, which decides by 0.5 if all weights are positive, else by 0. The
/// scores are then 1 - s or -s, and s; with LOGISTIC sigmoid(-s) and sigmoid(s).
void buildBinary(Node &n, mlir::Value scores, mlir::Value names, bool isPositive) {
  n.out(0, labelAt(n, names, isSecond(n, scores, isPositive ? 0.5 : 0)));
  bool isLogistic = n.s("post_transform", "NONE") == "LOGISTIC";
  mlir::Value first =
      isPositive && !isLogistic ? n.binary("sub", n.scalarLike(scores, 1), scores) : n.unary("neg", scores);
  mlir::Value both = n.one("concat", {first, scores}, {n.attr("axis", int64_t(1))});
  n.out(1, isLogistic ? n.unary("sigmoid", both) : both);
}

void buildClassifier(Node &n) {
  size_t labels = std::max(n.ints("classlabels_int64s").size(), n.strings("classlabels_strings").size());
  mlir::Value names = classLabels(n, "classlabels_int64s", "classlabels_strings");
  if (!names)
    return;
  std::vector<int64_t> ids = n.ints("class_ids");
  bool isOne = labels == 2 && std::count(ids.begin(), ids.end(), ids.empty() ? 0 : ids[0]) == std::ssize(ids);
  bool isPositive = true;
  mlir::Value scores = aggregate(n, "class", int64_t(labels), isPositive);
  if (n.failed())
    return;
  if (isOne) {
    int64_t at = ids.empty() ? 0 : ids[0];
    scores = n.one("slice", {scores, n.list({at}), n.list({at + 1}), n.list({1})});
  }
  scores = withBase(n, scores, isOne ? 1 : int64_t(labels));
  if (n.failed())
    return;
  if (isOne)
    return buildBinary(n, scores, names, isPositive);
  if (labels == 2) { // the second label's score alone decides
    mlir::Value second = n.one("slice", {scores, n.list({1}), n.list({2}), n.list({1})});
    n.out(0, labelAt(n, names, isSecond(n, second, 0)));
  } else {
    n.out(0, labelAt(n, names, largest(n, scores)));
  }
  n.out(1, postTransform(n, scores));
}

#define DSPARK_TREE_NODES                                                                                    \
  "aggregate_function:s base_values:F nodes_falsenodeids:I! nodes_featureids:I! nodes_hitrates>:F "          \
  "nodes_missing_value_tracks_true:I nodes_modes:S! nodes_nodeids:I! nodes_treeids:I! nodes_truenodeids:I! " \
  "nodes_values:F! post_transform:s "

constexpr OpRow rows[] = {
    in(kDomain, built("TreeEnsembleRegressor", 1, {}, buildRegressor,
                      DSPARK_TREE_NODES "n_targets:i target_ids:I! target_nodeids:I! target_treeids:I! "
                                        "target_weights:F!")),
    in(kDomain, built("TreeEnsembleClassifier", 1, {1, 1, 2, 2}, buildClassifier,
                      DSPARK_TREE_NODES "class_ids:I! class_nodeids:I! class_treeids:I! class_weights:F! "
                                        "classlabels_int64s:I classlabels_strings:S")),
};
#undef DSPARK_TREE_NODES

} // namespace

OpRows mlTreeRows() { return rows; }

} // namespace dspark::onnx
