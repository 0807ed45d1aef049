#include "compiler/Transforms/SplitByRows.h"

using namespace mlir;

namespace dspark {

SplitProduct splitByRows(Operation *op, int64_t mostRows, ir::OpFactory &factory) {
  const TensorInfo &x = factory.analysis().info(op->getOperand(0));
  if (!x.hasRank || x.rank() < 2)
    return {};
  Dim rows(1);
  for (int i = 0; i + 1 < x.rank(); ++i)
    rows = rows * x.dims[size_t(i)];
  if (rows.isConst() || !factory.analysis().isInputExpression(rows))
    return {};
  OpBuilder &builder = factory.opBuilder();
  Location loc = op->getLoc();
  builder.setInsertionPoint(op);
  auto type = RankedTensorType::get({}, builder.getI64Type());
  Value count = ir::DimsOp::create(builder, loc, type, builder.getStrArrayAttr({rows.str()}));
  factory.analysis().visit(count.getDefiningOp());
  Value isFew = factory.make1(loc, "compare", {count, factory.scalar(loc, mostRows)},
                              {factory.attr("kind", "le")});
  if (!isFew)
    return {};
  auto choice = ir::IfOp::create(builder, loc, op->getResultTypes(), isFew);
  auto copyInto = [&](Region &region) {
    builder.setInsertionPointToStart(&region.emplaceBlock());
    Operation *copy = builder.clone(*op);
    ir::YieldOp::create(builder, loc, copy->getResults());
    return copy;
  };
  SplitProduct split{copyInto(choice.getThenBody()), copyInto(choice.getElseBody())};
  op->replaceAllUsesWith(choice->getResults());
  factory.analysis().forget(op);
  op->erase();
  return split;
}

} // namespace dspark
