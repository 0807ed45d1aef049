// Elementwise regions: each tensor is read and written once, whatever the number of operations between.
#include "compiler/Conversion/FusedProgram.h"
#include "compiler/Transforms/Passes.h"
#include "dialects/DSpark/DimAnalysis.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_FUSEELEMENTWISEPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

class Grouper {
public:
  explicit Grouper(func::FuncOp func) : builder(func.getContext()) { analysis.run(func); }

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
    llvm::DenseSet<Operation *> grouped;
    for (Operation *root : roots) {
      if (grouped.contains(root) || !isMember(root))
        continue;
      llvm::SetVector<Operation *> group = grow(root, grouped);
      if (group.size() < 2)
        continue;
      grouped.insert(group.begin(), group.end());
      outline(root, group);
    }
  }

private:
  static bool isMember(Operation *op) { return !isa<ir::ConstantOp>(op) && isFusible(op); }

  // A constant that becomes an instruction instead of an operand.
  static bool isInlineConstant(Value value) {
    auto constant = value.getDefiningOp<ir::ConstantOp>();
    return constant && isFusible(constant);
  }

  bool sameShape(Value a, Value b) {
    const TensorInfo &x = analysis.info(a), &y = analysis.info(b);
    if (!x.hasRank || !y.hasRank || x.rank() != y.rank())
      return false;
    for (int i = 0; i < x.rank(); ++i)
      if (!x.dims[i].provablyEqual(y.dims[i]))
        return false;
    return true;
  }

  static SmallVector<Value> externalOperands(const llvm::SetVector<Operation *> &group) {
    llvm::SetVector<Value> operands;
    for (Operation *op : group)
      for (Value operand : op->getOperands())
        if (isa<TensorType>(operand.getType()) && !group.contains(operand.getDefiningOp()) &&
            !isInlineConstant(operand))
          operands.insert(operand);
    return operands.takeVector();
  }

  // Adds producers of the root's shape whose every use is in the group, nearest first, while the limits hold.
  llvm::SetVector<Operation *> grow(Operation *root, const llvm::DenseSet<Operation *> &grouped) {
    llvm::SetVector<Operation *> group;
    group.insert(root);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < group.size(); ++i) {
        for (Value operand : group[i]->getOperands()) {
          Operation *producer = operand.getDefiningOp();
          if (!producer || group.contains(producer) || grouped.contains(producer) ||
              producer->getBlock() != root->getBlock() || !isMember(producer) ||
              !sameShape(operand, root->getResult(0)))
            continue;
          bool usedInside =
              llvm::all_of(producer->getUsers(), [&](Operation *user) { return group.contains(user); });
          if (!usedInside)
            continue;
          group.insert(producer);
          if (int(externalOperands(group).size()) + 1 > kMaxFusedOperands ||
              int(group.size()) > kMaxFusedInstructions / 4) {
            group.remove(producer);
            continue;
          }
          changed = true;
        }
      }
    }
    return group;
  }

  void outline(Operation *root, const llvm::SetVector<Operation *> &group) {
    SmallVector<Operation *> ordered(group.begin(), group.end());
    llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    SmallVector<Value> operands = externalOperands(group);
    SmallVector<Location> locations;
    for (Operation *op : ordered)
      locations.push_back(op->getLoc());
    builder.setInsertionPoint(root);
    auto fused =
        ir::FusedOp::create(builder, builder.getFusedLoc(locations), root->getResultTypes(), operands);
    Block &body = fused.getBody().emplaceBlock();
    IRMapping mapping;
    for (Value operand : operands)
      mapping.map(operand, body.addArgument(operand.getType(), operand.getLoc()));
    builder.setInsertionPointToEnd(&body);
    for (Operation *op : ordered) {
      for (Value operand : op->getOperands())
        if (!mapping.contains(operand) && operand.getDefiningOp() && !group.contains(operand.getDefiningOp()))
          builder.clone(*operand.getDefiningOp(), mapping); // inline constants and absent bounds
      builder.clone(*op, mapping);
    }
    ir::YieldOp::create(builder, root->getLoc(), mapping.lookup(root->getResult(0)));
    analysis.setInfo(fused->getResult(0), analysis.info(root->getResult(0)));
    root->getResult(0).replaceAllUsesWith(fused->getResult(0));
    for (Operation *op : llvm::reverse(ordered)) {
      analysis.forget(op);
      op->erase();
    }
  }

  OpBuilder builder;
  ir::DimAnalysis analysis;
};

struct FuseElementwisePass : impl::FuseElementwisePassBase<FuseElementwisePass> {
  void runOnOperation() override {
    if (!getOperation().isExternal())
      Grouper(getOperation()).run(getOperation().front());
  }
};

} // namespace
} // namespace dspark
