#include "dialects/DSpark/DSpark.h"
#include "dialects/DSpark/Infer.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/DSpark/DSparkDialect.cpp.inc"
#include "dialects/DSpark/DSparkInterfaces.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/DSpark/DSparkTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/DSpark/DSparkOps.cpp.inc"

namespace dspark::ir {

void DSparkDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/DSpark/DSparkOps.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/DSpark/DSparkTypes.cpp.inc"
      >();
}

Operation *DSparkDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, elements);
}

StringRef KernelOp::getCatalogueName() { return getName(); }

} // namespace dspark::ir
