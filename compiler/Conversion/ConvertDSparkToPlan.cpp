// dspark -> plan: one step per operation, in program order.
#include "compiler/Conversion/FusedProgram.h"
#include "compiler/Conversion/Passes.h"
#include "dialects/DSpark/Infer.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_CONVERTDSPARKTOPLANPASS
#include "compiler/Conversion/Passes.h.inc"

namespace {

class Converter {
public:
  explicit Converter(MLIRContext *context) : builder(context) {}

  // Appends the steps of `from` to `to`; block arguments have been mapped.
  LogicalResult convertBlock(Block &from, Block &to) {
    for (Operation &op : from) {
      builder.setInsertionPointToEnd(&to);
      if (failed(convert(&op)))
        return failure();
    }
    return success();
  }

  IRMapping mapping;

private:
  SmallVector<Value> mapped(ValueRange values) {
    SmallVector<Value> result;
    for (Value value : values)
      result.push_back(mapping.lookup(value));
    return result;
  }

  LogicalResult convert(Operation *op) {
    Location loc = op->getLoc();
    if (auto constant = dyn_cast<ir::ConstantOp>(op)) {
      mapping.map(constant.getResult(),
                  plan::LiteralOp::create(builder, loc, constant.getType(), constant.getValue()));
    } else if (auto weight = dyn_cast<ir::WeightOp>(op)) {
      mapping.map(weight.getResult(),
                  plan::ConstantOp::create(builder, loc, weight.getType(), weight.getWeightAttr(),
                                           weight.getLayoutAttr()));
    } else if (auto dims = dyn_cast<ir::DimsOp>(op)) {
      mapping.map(dims.getResult(), plan::DimsOp::create(builder, loc, dims.getType(), dims.getExprsAttr()));
    } else if (isa<ir::NoneOp>(op)) {
      mapping.map(op->getResult(0), plan::AbsentOp::create(builder, loc, builder.getNoneType()));
    } else if (auto fused = dyn_cast<ir::FusedOp>(op)) {
      FailureOr<FusedProgram> program = buildFusedProgram(fused);
      if (failed(program))
        return failure();
      launch(op, isReduced(*program) ? "fused_reduce" : "fused", fusedConfig(*program, builder.getContext()));
    } else if (auto kernel = dyn_cast<ir::KernelOp>(op)) {
      launch(op, kernel.getName(), kernel.getConfigAttr());
    } else if (isa<ir::ShapeInterface>(op)) {
      launch(op, ir::catalogueName(op), op->getAttrDictionary());
    } else if (auto list = dyn_cast<ir::ListOp>(op)) {
      mapping.map(list.getOutput(),
                  plan::ListOp::create(builder, loc, list.getOutput().getType(), list.getOpAttr(),
                                       mapped(list.getInputs()), list.getConfigAttr()));
    } else if (auto branch = dyn_cast<ir::IfOp>(op)) {
      return convertIf(branch);
    } else if (auto loop = dyn_cast<ir::LoopOp>(op)) {
      return convertLoop(loop);
    } else if (isa<ir::YieldOp>(op)) {
      plan::YieldOp::create(builder, loc, mapped(op->getOperands()));
    } else if (isa<func::ReturnOp>(op)) {
      func::ReturnOp::create(builder, loc, mapped(op->getOperands()));
    } else {
      return op->emitError("has no form in the plan dialect");
    }
    return success();
  }

  void launch(Operation *op, StringRef name, DictionaryAttr config) {
    if (config && config.empty())
      config = DictionaryAttr();
    auto step =
        plan::LaunchOp::create(builder, op->getLoc(), op->getResultTypes(), builder.getStringAttr(name),
                               mapped(op->getOperands()), config, IntegerAttr(), StringAttr());
    mapping.map(op->getResults(), step->getResults());
  }

  LogicalResult convertIf(ir::IfOp op) {
    auto step =
        plan::IfOp::create(builder, op.getLoc(), op.getResultTypes(), mapping.lookup(op.getCondition()));
    if (failed(convertBlock(op.getThenBody().front(), step.getThenBody().emplaceBlock())) ||
        failed(convertBlock(op.getElseBody().front(), step.getElseBody().emplaceBlock())))
      return failure();
    mapping.map(op->getResults(), step->getResults());
    return success();
  }

  LogicalResult convertLoop(ir::LoopOp op) {
    NamedAttrList config(op->getAttrDictionary());
    config.set("num_scan_inputs",
               builder.getI64IntegerAttr(int64_t(op.getInputs().size()) - 2 - int64_t(op.getNumCarried())));
    auto step = plan::LoopOp::create(builder, op.getLoc(), op.getResultTypes(), mapped(op.getInputs()),
                                     config.getDictionary(op.getContext()));
    Block &from = op.getBody().front(), &to = step.getBody().emplaceBlock();
    for (BlockArgument argument : from.getArguments())
      mapping.map(argument, to.addArgument(argument.getType(), argument.getLoc()));
    if (failed(convertBlock(from, to)))
      return failure();
    mapping.map(op->getResults(), step->getResults());
    return success();
  }

  OpBuilder builder;
};

struct ConvertDSparkToPlanPass : impl::ConvertDSparkToPlanPassBase<ConvertDSparkToPlanPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return;
    Block &from = func.front();
    Block *to = new Block();
    Converter converter(&getContext());
    for (BlockArgument argument : from.getArguments())
      converter.mapping.map(argument, to->addArgument(argument.getType(), argument.getLoc()));
    func.getBody().push_back(to);
    if (failed(converter.convertBlock(from, *to)))
      return signalPassFailure();
    from.dropAllReferences();
    from.erase();
  }
};

} // namespace
} // namespace dspark
