#include "dialects/DSpark/DimAnalysis.h"

using namespace mlir;

namespace dspark::ir {
namespace {

// The facts both branches of an If agree on.
TensorInfo join(const TensorInfo &a, const TensorInfo &b) {
  TensorInfo both;
  both.type = a.type;
  if (!a.hasRank || !b.hasRank || a.rank() != b.rank())
    return both;
  both.hasRank = true;
  for (int i = 0; i < a.rank(); ++i)
    both.dims.push_back(a.dims[i].provablyEqual(b.dims[i]) ? a.dims[i] : Dim());
  return both;
}

} // namespace

Dim DimAnalysis::inputSymbol(StringRef name) {
  bound.insert(name.str());
  return dims.symbol(name.str());
}

bool DimAnalysis::isInputExpression(Dim dim) const {
  if (dim.isConst())
    return true;
  if (dim.isUnknown())
    return false;
  SmallVector<const DimNode *> work{dim.node()};
  while (!work.empty()) {
    const DimNode *node = work.pop_back_val();
    if (node->op == DimOp::Symbol && !bound.contains(node->table->symbols()[node->value]))
      return false;
    if (node->lhs)
      work.push_back(node->lhs);
    if (node->rhs)
      work.push_back(node->rhs);
  }
  return true;
}

void DimAnalysis::nameUnknownDims(TensorInfo &info) {
  for (Dim &dim : info.dims)
    if (dim.isUnknown())
      dim = dims.freshSymbol("u");
}

const TensorInfo &DimAnalysis::info(Value value) {
  auto it = facts.find(value.getAsOpaquePointer());
  if (it != facts.end())
    return it->second;
  if (Operation *op = value.getDefiningOp(); op && isa<ConstantOp, WeightOp, DimsOp>(op))
    visit(op);
  else
    setFromType(value);
  return facts[value.getAsOpaquePointer()];
}

void DimAnalysis::setInfo(Value value, TensorInfo info) { facts[value.getAsOpaquePointer()] = std::move(info); }

void DimAnalysis::forget(Operation *op) {
  op->walk([&](Operation *inner) {
    for (Value result : inner->getResults())
      facts.erase(result.getAsOpaquePointer());
    for (Region &region : inner->getRegions())
      for (Block &block : region)
        for (Value argument : block.getArguments())
          facts.erase(argument.getAsOpaquePointer());
  });
}

void DimAnalysis::setFromType(Value value) {
  TensorInfo info = infoOf(value);
  nameUnknownDims(info);
  setInfo(value, std::move(info));
}

void DimAnalysis::bindArgument(func::FuncOp func, unsigned index) {
  Value argument = func.getArgument(index);
  TensorInfo info = infoFromType(argument.getType());
  if (auto names = func.getArgAttrOfType<ArrayAttr>(index, kDimsAttr)) {
    for (auto [dim, name] : llvm::zip(info.dims, names.getAsRange<StringAttr>())) {
      int64_t number;
      dim = name.getValue().getAsInteger(10, number) ? inputSymbol(name.getValue()) : Dim(number);
    }
  }
  nameUnknownDims(info);
  setInfo(argument, std::move(info));
}

void DimAnalysis::run(func::FuncOp func) {
  facts.clear();
  if (func.isExternal())
    return;
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    bindArgument(func, i);
  visitBlock(func.front());
}

void DimAnalysis::visitBlock(Block &block) {
  for (Operation &op : block)
    visit(&op);
}

void DimAnalysis::visit(Operation *op) {
  if (auto branch = dyn_cast<IfOp>(op))
    return visitIf(branch);
  if (auto loop = dyn_cast<LoopOp>(op))
    return visitLoop(loop);
  if (auto expressions = dyn_cast<DimsOp>(op))
    return visitDims(expressions);
  if (auto fused = dyn_cast<FusedOp>(op))
    return visitFused(fused);
  if (isa<ShapeInterface>(op))
    return visitCatalogue(op);
  for (Value result : op->getResults())
    setFromType(result);
}

void DimAnalysis::visitIf(IfOp op) {
  visitBlock(op.getThenBody().front());
  visitBlock(op.getElseBody().front());
  auto thenYield = op.getThenBody().front().getTerminator(),
       elseYield = op.getElseBody().front().getTerminator();
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    TensorInfo both = join(info(thenYield->getOperand(index)), info(elseYield->getOperand(index)));
    nameUnknownDims(both);
    setInfo(result, std::move(both));
  }
}

// Carried values may change shape per iteration; the block argument's type says what is the same in all of
// them.
void DimAnalysis::visitLoop(LoopOp op) {
  for (Value argument : op.getBody().front().getArguments())
    setFromType(argument);
  visitBlock(op.getBody().front());
  for (Value result : op.getResults())
    setFromType(result);
}

void DimAnalysis::visitDims(DimsOp op) {
  TensorInfo result = infoFromType(op.getType());
  result.hasContents = true;
  for (StringAttr expr : op.getExprs().getAsRange<StringAttr>())
    result.ints.push_back(dims.parse(expr.getValue()).value_or(Dim()));
  setInfo(op.getResult(), std::move(result));
}

void DimAnalysis::visitFused(FusedOp op) {
  Block &body = op.getBody().front();
  for (auto [argument, operand] : llvm::zip(body.getArguments(), op.getOperands()))
    setInfo(argument, info(operand));
  visitBlock(body);
  for (auto [result, yielded] : llvm::zip(op.getResults(), body.getTerminator()->getOperands()))
    setInfo(result, info(yielded));
}

void DimAnalysis::visitCatalogue(Operation *op) {
  std::vector<TensorInfo> operands;
  for (Value operand : op->getOperands())
    operands.push_back(info(operand));
  AttrList attributes;
  catalogueAttributes(op, attributes);
  InferContext ctx;
  ctx.in = operands;
  ctx.attrs = attributes.view();
  InferStatus status = inferResults(catalogueName(op), op->getNumResults(), ctx);
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    TensorInfo inferred;
    if (status == InferStatus::Ok && !ctx.dimsFromKernel)
      inferred = std::move(ctx.out[index]);
    TensorInfo declared = infoFromType(result.getType());
    // The type may know more than the shape function (a declared dim of the model) and the reverse.
    if (!inferred.present() || (!inferred.hasRank && declared.hasRank)) {
      inferred = declared;
    } else if (declared.hasRank && inferred.rank() == declared.rank()) {
      for (int i = 0; i < inferred.rank(); ++i)
        if (!inferred.dims[i].isConst() && declared.dims[i].isConst())
          inferred.dims[i] = declared.dims[i];
    }
    nameUnknownDims(inferred);
    setInfo(result, std::move(inferred));
  }
}

} // namespace dspark::ir
