// Lifetimes and in-place results. Offsets are planned by the runtime, once per input shape, from these same
// facts (runtime/format/ArenaPlan.h).
#include "compiler/Transforms/Passes.h"
#include "kernels/common/catalogue.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_PLANMEMORYPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

const OpEntry *entryOf(plan::LaunchOp launch) {
  StringRef name = launch.getOp();
  return findOp(std::string_view(name.data(), name.size()));
}

// Views share the bytes of their operand, so that the operand lives as long as they do. A result that takes
// over a buffer does not: its operand is dead.
Value storageOf(Value value) {
  while (auto launch = value.getDefiningOp<plan::LaunchOp>()) {
    const OpEntry *entry = entryOf(launch);
    if (!entry || !entry->isView)
      break;
    value = launch.getInputs()[0];
  }
  return value;
}

bool ownsBuffer(Value value) {
  return isa_and_nonnull<plan::LaunchOp, plan::LoopOp, plan::TransferOp>(value.getDefiningOp());
}

class Planner {
public:
  void planBlock(Block &block) {
    // Last use of each storage by an operation of this block; uses in nested blocks count for the operation
    // that holds them.
    llvm::DenseMap<Value, Operation *> lastUse;
    // A tensor in a list lives as long as the block: where the list goes is not followed.
    for (Operation &op : block) {
      op.walk([&](Operation *inner) {
        Operation *end = isa<plan::ListOp>(inner) ? block.getTerminator() : &op;
        for (Value operand : inner->getOperands())
          if (isa<TensorType>(operand.getType()) && !isKeptByList(lastUse, operand, block))
            lastUse[storageOf(operand)] = end;
      });
      for (Region &region : op.getRegions())
        for (Block &nested : region)
          planBlock(nested);
    }
    llvm::MapVector<Operation *, SmallVector<Value>> frees;
    for (Operation &op : block) {
      if (auto launch = dyn_cast<plan::LaunchOp>(op))
        markInPlace(launch, lastUse);
      for (Value result : op.getResults()) {
        if (!ownsBuffer(result) || !isa<TensorType>(result.getType()) || storageOf(result) != result)
          continue;
        auto it = lastUse.find(result);
        Operation *end = it == lastUse.end() ? &op : it->second;
        if (!end->hasTrait<OpTrait::IsTerminator>())
          frees[end].push_back(result);
      }
    }
    for (auto &[op, values] : frees) {
      OpBuilder builder(op->getContext());
      builder.setInsertionPointAfter(op);
      plan::FreeOp::create(builder, op->getLoc(), values);
    }
  }

private:
  static bool isKeptByList(llvm::DenseMap<Value, Operation *> &lastUse, Value operand, Block &block) {
    return lastUse.lookup(storageOf(operand)) == block.getTerminator();
  }

  // The first operand that the catalogue lets the result overwrite, that dies here and has the result's type
  // size.
  void markInPlace(plan::LaunchOp launch, llvm::DenseMap<Value, Operation *> &lastUse) {
    const OpEntry *entry = entryOf(launch);
    if (!entry || entry->isView || entry->inPlace == 0 || launch.getNumResults() != 1)
      return;
    for (auto [index, operand] : llvm::enumerate(launch.getInputs())) {
      if (index >= 32 || !(entry->inPlace >> index & 1) || !isa<TensorType>(operand.getType()))
        continue;
      Value storage = storageOf(operand);
      bool isDead = ownsBuffer(storage) && storage.getParentBlock() == launch->getBlock() &&
                    lastUse.lookup(storage) == launch.getOperation();
      unsigned uses = llvm::count(launch.getInputs(), operand);
      if (isDead && uses == 1 && operand.getType() == launch.getResult(0).getType()) {
        launch.setInPlace(int64_t(index));
        return;
      }
    }
  }
};

struct PlanMemoryPass : impl::PlanMemoryPassBase<PlanMemoryPass> {
  void runOnOperation() override {
    if (!getOperation().isExternal())
      Planner().planBlock(getOperation().front());
  }
};

} // namespace
} // namespace dspark
