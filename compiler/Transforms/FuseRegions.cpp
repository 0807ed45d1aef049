// Elementwise operations and what reduces rows between them, in one step:
//
//   add(scores, mask) -> softmax -> mul        becomes  dspark.fused {row_axes = 1}
//   add(x, y) -> layer_norm, the sum also used later    the same with two results
//   mul(x, x) -> reduce sum -> sqrt -> div(x, it)       the same: each tensor read and written once
//
// It pays whenever a tensor between two operations disappears: a row stays in the cache while passes over it
// reduce and use it (kernels/fused/passes.h). Rows are the last axes of the region's full shape; its operands
// have each row whole, or one number per row.
#include "compiler/Conversion/FusedProgram.h"
#include "compiler/Transforms/Passes.h"
#include "dialects/DSpark/DimAnalysis.h"
#include "dialects/DSpark/RowAxes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_FUSEREGIONSPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

/// Reductions of shorter rows would slow their neighbours down, which need not walk by rows.
constexpr int64_t kShortestRow = 16;
/// Longer ones leave the second cache, and their reductions are cut over threads by the catalogue's kernels.
constexpr int64_t kLongestRow = int64_t(1) << 16;

/// Where a value stands in a region: over the full shape, or one number per row with row axes of 1 (Kept) or
/// without them (Dropped).
enum class Place { None, Full, Kept, Dropped };

struct Group {
  TensorInfo full;
  int rowAxes = 0;
  llvm::SetVector<Operation *> ops; // the root first

  bool has(Operation *op) const { return op && ops.contains(op); }
};

bool equalDims(ArrayRef<Dim> a, ArrayRef<Dim> b) {
  return llvm::all_of_zip(a, b, [](Dim x, Dim y) { return x.provablyEqual(y); }) && a.size() == b.size();
}

/// The instructions that an operation becomes at most.
int instructionCount(Operation *op) {
  return isa<ir::ReduceOp, ir::LayerNormOp>(op) ? 12 : isa<ir::SoftmaxOp>(op) ? 6 : 4;
}
/// The reductions that one result of an operation needs in turn.
int depthOf(Operation *op) {
  return isa<ir::LayerNormOp, ir::SoftmaxOp>(op) ? 2 : isa<ir::ReduceOp>(op) ? 2 : 0;
}

class Grouper {
public:
  explicit Grouper(func::FuncOp func) : builder(func.getContext()) {
    analysis.run(func);
    func.walk([&](Operation *op) {
      if (int axes = reducedAxes(op); axes > 0)
        axesOfReductions.insert(axes);
    });
  }

  // Roots are tried from the last operation up, so that a group holds the whole chain.
  void run(Block &block) {
    for (Operation &op : block)
      for (Region &region : op.getRegions())
        if (!isa<ir::FusedOp>(op))
          for (Block &nested : region)
            run(nested);
    SmallVector<Operation *> roots;
    for (Operation &op : llvm::reverse(block))
      roots.push_back(&op);
    for (Operation *root : roots) {
      if (grouped.contains(root))
        continue;
      Group best;
      for (const Group &start : starts(root))
        if (Group group = grow(start, root); group.ops.size() > best.ops.size() && isWhole(group))
          best = std::move(group);
      if (best.ops.size() < 2)
        continue;
      grouped.insert(best.ops.begin(), best.ops.end());
      outline(best);
    }
  }

private:
  static bool isElementwise(Operation *op) { return !isa<ir::ConstantOp>(op) && isFusible(op); }

  /// The row axes of a reduction that programs have; 0 if it is none.
  int reducedAxes(Operation *op) {
    if (!isFusibleReduction(op))
      return 0;
    Value x = op->getOperand(0);
    bool hasAxes = isa<ir::ReduceOp>(op) && op->getNumOperands() > 1;
    return ir::rowAxes(op, analysis.info(x), hasAxes ? analysis.info(op->getOperand(1)) : TensorInfo());
  }

  /// The operands that a body needs: not the axes of a reduction, nor absent ones.
  static SmallVector<Value> dataOperands(Operation *op) {
    SmallVector<Value> operands;
    for (Value operand : isa<ir::ReduceOp>(op) ? op->getOperands().take_front(1) : op->getOperands())
      if (isa<TensorType>(operand.getType()))
        operands.push_back(operand);
    return operands;
  }

  /// A constant that becomes an instruction instead of an operand: one number that `user`'s result owes no
  /// dim to.
  bool isInlineConstant(Value value, Operation *user) {
    auto constant = value.getDefiningOp<ir::ConstantOp>();
    if (!constant || !isFusible(constant))
      return false;
    const TensorInfo &own = analysis.info(value), &result = analysis.info(user->getResult(0));
    return llvm::any_of(dataOperands(user), [&](Value other) {
      const TensorInfo &x = analysis.info(other);
      if (other == value || !x.hasRank || !own.hasRank || !result.hasRank)
        return false;
      return equalDims(x.dims, result.dims) || (own.elements().is(1) && own.rank() <= x.rank());
    });
  }

  Place place(Value value, const Group &group) {
    const TensorInfo &info = analysis.info(value);
    if (!info.hasRank)
      return Place::None;
    if (equalDims(info.dims, group.full.dims))
      return Place::Full;
    SmallVector<Dim> outer(ArrayRef<Dim>(group.full.dims).drop_back(size_t(group.rowAxes)));
    if (group.rowAxes > 0 && equalDims(info.dims, outer))
      return Place::Dropped;
    outer.resize(group.full.dims.size(), Dim(1));
    return equalDims(info.dims, outer) ? Place::Kept : Place::None;
  }

  /// Whether an operand of a region has each row whole, or one number per row.
  bool fitsRows(Value value, const Group &group) {
    const TensorInfo &info = analysis.info(value);
    if (!info.hasRank || info.rank() > group.full.rank())
      return false;
    bool isWhole = true, isUniform = true;
    for (int back = 1; back <= group.rowAxes; ++back) {
      Dim dim = back > info.rank() ? Dim(1) : info.dims[size_t(info.rank() - back)];
      isUniform &= dim.is(1);
      isWhole &= dim.provablyEqual(group.full.dims[size_t(group.full.rank() - back)]);
    }
    return isWhole || isUniform;
  }

  /// Whether the operation computes one of the group's values, whoever makes its operands.
  bool admits(const Group &group, Operation *op) {
    if (op->getNumResults() != 1 || !isa<TensorType>(op->getResult(0).getType()))
      return false;
    auto fits = [&](Value operand) { return isInlineConstant(operand, op) || fitsRows(operand, group); };
    if (int axes = reducedAxes(op); axes > 0) {
      ArrayRef<Dim> dims = analysis.info(op->getOperand(0)).dims;
      Dim length = dimProduct(dims, dims.size() - size_t(axes), dims.size());
      bool isReasonable =
          !length.isConst() || (length.value() >= kShortestRow && length.value() <= kLongestRow);
      return isReasonable && axes == group.rowAxes && place(op->getOperand(0), group) == Place::Full &&
             llvm::all_of(dataOperands(op), fits);
    }
    if (!isElementwise(op))
      return false;
    Place own = place(op->getResult(0), group);
    if (own == Place::Dropped) // its operands are then of the region
      return llvm::all_of(dataOperands(op), [&](Value operand) {
        return isInlineConstant(operand, op) || place(operand, group) == Place::Dropped;
      });
    return own != Place::None && llvm::all_of(dataOperands(op), fits);
  }

  /// The full shapes that a group with this root can have.
  SmallVector<Group> starts(Operation *root) {
    SmallVector<Group> groups;
    auto add = [&](const TensorInfo &full, int axes) {
      if (full.hasRank && full.rank() >= axes)
        groups.push_back({full, axes, {}});
    };
    if (int axes = reducedAxes(root); axes > 0)
      add(analysis.info(root->getOperand(0)), axes);
    if (root->getNumResults() != 1 || !isElementwise(root) || !isResult(root->getResult(0)))
      return groups;
    for (int axes : axesOfReductions)
      add(analysis.info(root->getResult(0)), axes);
    // The root may compute with numbers per row.
    Operation *above = root;
    for (int steps = 0; above && isElementwise(above) && steps < 8; ++steps) {
      Operation *next = nullptr;
      for (Value operand : dataOperands(above)) {
        Operation *producer = operand.getDefiningOp();
        if (producer && equalDims(analysis.info(operand).dims, analysis.info(root->getResult(0)).dims))
          next = producer;
      }
      above = next;
    }
    if (auto reduce = dyn_cast_or_null<ir::ReduceOp>(above))
      if (int axes = reducedAxes(reduce); axes > 0)
        add(analysis.info(reduce->getOperand(0)), axes);
    add(analysis.info(root->getResult(0)), 0);
    return groups;
  }

  /// The operands of the region, and the results of its operations that it must yield: the root's first.
  SmallVector<Value> externalOperands(const Group &group) {
    llvm::SetVector<Value> operands;
    for (Operation *op : group.ops)
      for (Value operand : dataOperands(op))
        if (!group.has(operand.getDefiningOp()) && !isInlineConstant(operand, op))
          operands.insert(operand);
    return operands.takeVector();
  }
  SmallVector<Value> externalResults(const Group &group) {
    SmallVector<Value> results;
    for (Operation *op : group.ops)
      if (llvm::any_of(op->getUsers(), [&](Operation *user) { return !group.has(user); }) ||
          op == group.ops.front())
        results.push_back(op->getResult(0));
    return results;
  }

  /// Programs compute conditions, but their results are f32.
  static bool isResult(Value value) { return cast<TensorType>(value.getType()).getElementType().isF32(); }

  /// Whether everything outside the group that uses the producer comes after the root, where the region will
  /// be, and can have it from there.
  static bool isFreeBefore(Operation *producer, const Group &group) {
    Operation *root = group.ops.front();
    return llvm::all_of(producer->getUsers(), [&](Operation *user) {
      Operation *ancestor = root->getBlock()->findAncestorOpInBlock(*user);
      return group.has(user) ||
             (ancestor && root->isBeforeInBlock(ancestor) && isResult(producer->getResult(0)));
    });
  }

  /// Adds producers while the limits hold, nearest first.
  Group grow(Group group, Operation *root) {
    if (!admits(group, root))
      return group;
    group.ops.insert(root);
    int instructions = instructionCount(root);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < group.ops.size(); ++i) {
        for (Value operand : dataOperands(group.ops[i])) {
          Operation *producer = operand.getDefiningOp();
          if (!producer || group.has(producer) || grouped.contains(producer) ||
              producer->getBlock() != root->getBlock() || !admits(group, producer) ||
              !isFreeBefore(producer, group))
            continue;
          group.ops.insert(producer);
          if (externalOperands(group).size() + externalResults(group).size() > size_t(kMaxFusedOperands) ||
              instructions + instructionCount(producer) > kMaxFusedInstructions) {
            group.ops.remove(producer);
            continue;
          }
          instructions += instructionCount(producer);
          changed = true;
        }
      }
    }
    return group;
  }

  /// Whether the group is a region: numbers per row without row axes come from inside, reductions are not too
  /// deep, and the operands make the full shape.
  bool isWhole(const Group &group) {
    SmallVector<Operation *> ordered = inOrder(group);
    llvm::DenseMap<Operation *, int> depth;
    bool reduces = false;
    for (Operation *op : ordered) {
      bool isDropped = isElementwise(op) && place(op->getResult(0), group) == Place::Dropped;
      int deepest = 0;
      for (Value operand : dataOperands(op)) {
        Operation *producer = operand.getDefiningOp();
        if (group.has(producer))
          deepest = std::max(deepest, depth.lookup(producer));
        else if (isDropped && !isInlineConstant(operand, op))
          return false;
      }
      depth[op] = deepest + depthOf(op);
      reduces |= depthOf(op) > 0;
      if (depth[op] > kMaxFusedDepth)
        return false;
    }
    std::vector<TensorInfo> operands;
    for (Value operand : externalOperands(group))
      operands.push_back(analysis.info(operand));
    InferContext ctx;
    TensorInfo shape;
    if (reduces != (group.rowAxes > 0) || operands.empty() || !broadcastDims(ctx, operands, shape) ||
        !shape.hasRank || shape.rank() != group.full.rank())
      return false;
    return llvm::all_of_zip(shape.dims, group.full.dims, [](Dim a, Dim b) {
      return !a.isConst() || !b.isConst() || a.value() == b.value();
    });
  }

  static SmallVector<Operation *> inOrder(const Group &group) {
    SmallVector<Operation *> ordered(group.ops.begin(), group.ops.end());
    llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return ordered;
  }

  void outline(const Group &group) {
    SmallVector<Operation *> ordered = inOrder(group);
    SmallVector<Value> operands = externalOperands(group), results = externalResults(group);
    SmallVector<Location> locations;
    for (Operation *op : ordered)
      locations.push_back(op->getLoc());
    Operation *root = group.ops.front();
    builder.setInsertionPoint(root);
    auto axes = group.rowAxes > 0 ? builder.getI64IntegerAttr(group.rowAxes) : IntegerAttr();
    auto fused = ir::FusedOp::create(builder, builder.getFusedLoc(locations), ValueRange(results).getTypes(),
                                     operands, axes);
    Block &body = fused.getBody().emplaceBlock();
    IRMapping mapping;
    for (Value operand : operands)
      mapping.map(operand, body.addArgument(operand.getType(), operand.getLoc()));
    builder.setInsertionPointToEnd(&body);
    for (Operation *op : ordered)
      cloneInto(op, group, mapping);
    SmallVector<Value> yielded;
    for (Value result : results)
      yielded.push_back(mapping.lookup(result));
    ir::YieldOp::create(builder, root->getLoc(), yielded);
    for (auto [from, to] : llvm::zip(results, fused->getResults())) {
      analysis.setInfo(to, analysis.info(from));
      from.replaceUsesWithIf(to, [&](OpOperand &use) { return !group.has(use.getOwner()); });
    }
    for (Operation *op : llvm::reverse(ordered)) {
      analysis.forget(op);
      op->erase();
    }
  }

  /// With the constants it needs; a reduction has its axes as an attribute.
  void cloneInto(Operation *op, const Group &group, IRMapping &mapping) {
    if (auto reduce = dyn_cast<ir::ReduceOp>(op)) {
      SmallVector<int64_t> axes;
      for (int axis = -group.rowAxes; axis < 0; ++axis)
        axes.push_back(axis);
      auto clone = ir::ReduceOp::create(
          builder, op->getLoc(), op->getResultTypes(), ValueRange{mapping.lookup(op->getOperand(0))},
          reduce.getKindAttr(), builder.getDenseI64ArrayAttr(axes), reduce.getKeepdimsAttr(), IntegerAttr());
      mapping.map(op->getResult(0), clone->getResult(0));
      return;
    }
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand))
        builder.clone(*operand.getDefiningOp(), mapping); // an inline constant or an absent operand
    builder.clone(*op, mapping);
  }

  OpBuilder builder;
  ir::DimAnalysis analysis;
  llvm::SmallSetVector<int, 4> axesOfReductions;
  llvm::DenseSet<Operation *> grouped;
};

struct FuseRegionsPass : impl::FuseRegionsPassBase<FuseRegionsPass> {
  void runOnOperation() override {
    if (!getOperation().isExternal())
      Grouper(getOperation()).run(getOperation().front());
  }
};

} // namespace
} // namespace dspark
