// Softmax and its kin, and normalisations.
#include "frontends/onnx/Node.h"
#include "frontends/onnx/ops/Legacy.h"

namespace dspark::onnx {
namespace {

/// Before opset 13: over all axes from `axis` on, taken together.
void buildLegacySoftmax(Node &n) {
  int64_t axis = n.i("axis", 1);
  auto along = [&](mlir::Value x, int64_t axis) {
    return n.one("softmax", {x}, {n.attr("kind", n.row().kind), n.attr("axis", axis)});
  };
  auto rank = n.rank(n.in(0));
  bool isLast = axis == -1 || (rank && axis == *rank - 1);
  n.out(0, isLast ? along(n.in(0), -1)
                  : onFlattened(n, n.in(0), axis, [&](mlir::Value flat) { return along(flat, 1); }));
}
constexpr OpRow legacySoftmax(std::string_view op, std::string_view kind) {
  OpRow row = built(op, 1, {}, buildLegacySoftmax, "axis:i");
  row.kind = kind;
  return row;
}

std::vector<int64_t> allAxesBut(int64_t rank, int64_t kept) {
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (axis != kept)
      axes.push_back(axis);
  return axes;
}

/// Training form (opset 14 on): statistics of this batch, and running ones as results 1 and 2. The variance
/// is the population's.
void batchNormTraining(Node &n) {
  auto rank = n.rank(n.in(0));
  if (!rank)
    return n.unsupported("training_mode needs an input of known rank");
  mlir::Value x = n.in(0);
  double momentum = n.f("momentum", 0.9);
  std::vector<int64_t> axes = allAxesBut(*rank, 1);
  mlir::Value mean = n.reduce("mean", x, axes);
  mlir::Value centred = n.binary("sub", x, mean);
  mlir::Value var = n.reduce("mean", n.binary("mul", centred, centred), axes, false);
  mean = n.reduce("mean", x, axes, false);
  n.out(0, n.one("batch_norm", {x, n.in(1), n.in(2), mean, var}, n.pick("epsilon")));
  auto running = [&](mlir::Value old, mlir::Value now) {
    return n.binary("add", n.binary("mul", old, n.scalarLike(old, momentum)),
                    n.binary("mul", now, n.scalarLike(now, 1 - momentum)));
  };
  if (n.wants(1))
    n.out(1, running(n.in(3), mean));
  if (n.wants(2))
    n.out(2, running(n.in(4), var));
}

void buildBatchNorm(Node &n) {
  if (n.i("training_mode", 0))
    return batchNormTraining(n);
  if (n.i("spatial", 1) == 0)
    return n.unsupported("BatchNormalization with spatial = 0 is not supported");
  for (size_t i = 1; i < n.numOutputs(); ++i)
    if (n.wants(i))
      return n.unsupported("BatchNormalization's training results are not supported before opset 14");
  n.out(0, n.one("batch_norm", n.inputs(), n.pick("epsilon")));
}

/// Until opset 6 the attribute is_test told inference from training, and said training if absent.
void buildBatchNorm1(Node &n) {
  if (!n.i("is_test", 0) && n.numOutputs() > 1)
    return n.unsupported("BatchNormalization in training is not supported before opset 14");
  buildBatchNorm(n);
}

/// Until opset 20 scale and bias were per group: repeat each for the group's channels.
void buildGroupNorm18(Node &n) {
  Dim channels = n.rank(n.in(0)).value_or(0) > 1 ? n.info(n.in(0)).dims[1] : Dim();
  int64_t groups = n.i("num_groups", 0);
  if (!channels.isConst() || groups <= 0 || channels.value() % groups)
    return n.unsupported(
        "GroupNormalization before opset 21 needs a known number of channels that num_groups divides");
  auto perChannel = [&](mlir::Value v) {
    mlir::Value column = n.one("unsqueeze", {v, n.list({1})});
    mlir::Value wide = n.one("expand", {column, n.list({groups, channels.value() / groups})});
    return n.one("reshape", {wide, n.list({-1})});
  };
  n.out(0, n.one("group_norm", {n.in(0), perChannel(n.in(1)), perChannel(n.in(2))},
                 n.pick("epsilon num_groups")));
}

constexpr OpRow rows[] = {
    legacySoftmax("Softmax", "softmax"),
    direct("Softmax", 13, {}, "softmax", "axis:i", "softmax"),
    legacySoftmax("LogSoftmax", "log_softmax"),
    direct("LogSoftmax", 13, {}, "softmax", "axis:i", "log_softmax"),
    legacySoftmax("Hardmax", "hardmax"),
    direct("Hardmax", 13, {}, "softmax", "axis:i", "hardmax"),

    direct("LayerNormalization", 17, {2, 3, 1, 3}, "layer_norm", "axis:i epsilon:f stash_type:i", "layer"),
    direct("RMSNormalization", 23, {2, 2}, "layer_norm", "axis:i epsilon:f stash_type:i", "rms"),
    built("BatchNormalization", 1, {5, 5, 1, 5}, buildBatchNorm1, "epsilon:f momentum:f is_test:i spatial:i"),
    built("BatchNormalization", 7, {5, 5, 1, 5}, buildBatchNorm, "epsilon:f momentum:f spatial:i"),
    built("BatchNormalization", 14, {5, 5, 1, 3}, buildBatchNorm, "epsilon:f momentum:f training_mode:i"),
    direct("InstanceNormalization", 1, {3, 3}, "instance_norm", "epsilon:f"),
    built("GroupNormalization", 18, {3, 3}, buildGroupNorm18, "epsilon:f num_groups:i!"),
    direct("GroupNormalization", 21, {3, 3}, "group_norm", "epsilon:f num_groups:i! stash_type:i"),
    direct("LRN", 1, {}, "lrn", "alpha:f beta:f bias:f size:i!"),
    direct("LpNormalization", 1, {}, "lp_norm", "axis:i p:i"),
    direct("MeanVarianceNormalization", 9, {}, "mean_variance_norm", "axes:I"),
};

} // namespace

OpRows normRows() { return rows; }

} // namespace dspark::onnx
