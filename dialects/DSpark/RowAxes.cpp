#include "dialects/DSpark/RowAxes.h"

using namespace mlir;

namespace dspark::ir {
namespace {

// The axes of a reduce; nullopt if they are not known.
std::optional<SmallVector<int64_t>> reducedAxes(ReduceOp reduce, const TensorInfo &axes) {
  SmallVector<int64_t> list;
  if (reduce.getAxes())
    list.assign(reduce.getAxes()->begin(), reduce.getAxes()->end());
  if (reduce.getInputs().size() < 2 || isa<NoneType>(reduce.getInputs()[1].getType()))
    return list;
  if (!axes.hasContents)
    return std::nullopt;
  list.clear();
  for (Dim axis : axes.ints) {
    if (!axis.isConst())
      return std::nullopt;
    list.push_back(axis.value());
  }
  return list;
}

} // namespace

int rowAxes(Operation *op, const TensorInfo &x, const TensorInfo &axes) {
  if (!x.hasRank || x.rank() == 0)
    return 0;
  if (auto softmax = dyn_cast<SoftmaxOp>(op))
    return normalizeAxis(softmax.getAxis().value_or(-1), x.rank()) == x.rank() - 1 ? 1 : 0;
  if (auto norm = dyn_cast<LayerNormOp>(op)) {
    int axis = normalizeAxis(norm.getAxis().value_or(-1), x.rank());
    return axis < 0 ? 0 : x.rank() - axis;
  }
  auto reduce = dyn_cast<ReduceOp>(op);
  std::optional<SmallVector<int64_t>> list = reduce ? reducedAxes(reduce, axes) : std::nullopt;
  if (!list)
    return 0;
  if (list->empty())
    return reduce.getNoopWithEmptyAxes().value_or(0) != 0 ? 0 : x.rank();
  llvm::SmallDenseSet<int> distinct;
  int first = x.rank();
  for (int64_t axis : *list) {
    int normal = normalizeAxis(axis, x.rank());
    if (normal < 0)
      return 0;
    distinct.insert(normal);
    first = std::min(first, normal);
  }
  return int(distinct.size()) == x.rank() - first ? x.rank() - first : 0;
}

} // namespace dspark::ir
