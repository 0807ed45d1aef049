// Labels C1, C2 ... are those of PlanOps.td.
#include "dialects/Plan/Plan.h"
#include "kernels/common/catalogue.h"

using namespace mlir;

#include "dialects/Plan/PlanDialect.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.cpp.inc"

namespace dspark::plan {

void PlanDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Plan/PlanOps.cpp.inc"
      >();
}

LogicalResult ConstantOp::verify() {
  if (!cast<TensorType>(getType()).hasStaticShape()) // C1
    return emitOpError("expected a static type, found ") << getType();
  return success();
}

LogicalResult LaunchOp::verify() {
  StringRef name = getOp();
  if (!findOp(std::string_view(name.data(), name.size()))) // C1
    return emitOpError("the operator catalogue has no '") << name << "'";
  if (std::optional<int64_t> operand = getInPlace()) { // C2
    if (*operand < 0 || *operand >= int64_t(getInputs().size()) || getNumResults() == 0)
      return emitOpError("in_place expected an operand number below ")
             << getInputs().size() << ", found " << *operand;
    auto from = dyn_cast<RankedTensorType>(getInputs()[*operand].getType());
    auto to = dyn_cast<RankedTensorType>(getResult(0).getType());
    auto bits = [](RankedTensorType type) {
      return type.getNumElements() *
             int64_t(type.getElementType().isIntOrFloat() ? type.getElementTypeBitWidth() : 0);
    };
    if (from && to && from.hasStaticShape() && to.hasStaticShape() && bits(from) != bits(to))
      return emitOpError("in_place expected operand and result of one size, found ") << from << " and " << to;
  }
  return success();
}

LogicalResult TransferOp::verify() {
  if (getSource() == getDestination()) // C1
    return emitOpError("expected two devices, found '") << getSource() << "' twice";
  return success();
}

LogicalResult FreeOp::verify() {
  for (Value value : getValues())
    for (Operation *user : value.getUsers()) // C1
      if (user->getBlock() == getOperation()->getBlock() && getOperation()->isBeforeInBlock(user))
        return emitOpError("a freed value is used later by ") << user->getName();
  return success();
}

LogicalResult IfOp::verify() {
  for (Region *region : {&getThenBody(), &getElseBody()}) // C1
    if (region->front().getTerminator()->getNumOperands() != getNumResults())
      return emitOpError("expected ") << getNumResults() << " yielded values, found "
                                      << region->front().getTerminator()->getNumOperands();
  return success();
}

LogicalResult LoopOp::verify() {
  unsigned yielded = getBody().front().getTerminator()->getNumOperands();
  if (yielded != 1 + getNumResults()) // C1
    return emitOpError("expected ") << 1 + getNumResults() << " yielded values, found " << yielded;
  return success();
}

} // namespace dspark::plan
