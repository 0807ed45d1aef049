// Verifiers of the operations that are not bound to the catalogue. Labels C1, C2 ... are those of
// DSparkOps.td.
#include "dialects/DSpark/DSpark.h"
#include "dialects/DSpark/Infer.h"
#include "dialects/DSpark/RowAxes.h"
#include "kernels/common/catalogue.h"
#include "kernels/matmul/packed_format.h"

using namespace mlir;

namespace dspark::ir {
namespace {

constexpr StringLiteral kLayouts[] = {"", "panel16", "panel16k4", "depthwise"};

// Block arguments are the operands, yields are the results: what region-carrying operations share.
LogicalResult verifyBlockArguments(Operation *op, Block &block, TypeRange operands) {
  if (block.getNumArguments() != operands.size())
    return op->emitOpError("expected ")
           << operands.size() << " block arguments, found " << block.getNumArguments();
  for (auto [index, argument, type] : llvm::enumerate(block.getArgumentTypes(), operands))
    if (argument != type)
      return op->emitOpError("block argument ") << index << " expected " << type << ", found " << argument;
  return success();
}

LogicalResult verifyYield(Operation *op, Block &block, TypeRange results) {
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield)
    return op->emitOpError("expected dspark.yield at the end of the block");
  if (yield.getNumOperands() != results.size())
    return op->emitOpError("expected ")
           << results.size() << " yielded values, found " << yield.getNumOperands();
  for (auto [index, yielded, type] : llvm::enumerate(yield.getOperandTypes(), results))
    if (yielded != type)
      return op->emitOpError("yielded value ") << index << " expected " << type << ", found " << yielded;
  return success();
}

// Whether a type may have these dims: no number contradicts.
bool mayHaveDims(const TensorInfo &type, ArrayRef<Dim> dims) {
  if (!type.hasRank)
    return true;
  if (type.dims.size() != dims.size())
    return false;
  for (auto [a, b] : llvm::zip(type.dims, dims))
    if (a.isConst() && b.isConst() && a.value() != b.value())
      return false;
  return true;
}

bool isOneBool(Type type) {
  TensorInfo info = infoFromType(type);
  if (info.type != DType::Bool)
    return false;
  Dim elements = info.elements();
  return !elements.isConst() || elements.is(1);
}

} // namespace

LogicalResult ConstantOp::verify() {
  auto type = getValue().getShapedType();
  if (type != getType()) // C1
    return emitOpError("expected value of type ") << getType() << ", found " << type;
  int64_t bytes = dtypeBytes(dtypeOf(type.getElementType()), type.getNumElements());
  if (bytes > kMaxConstantBytes) // C2
    return emitOpError("expected at most ")
           << kMaxConstantBytes << " bytes, found " << bytes << "; use dspark.weight";
  return success();
}

LogicalResult WeightOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape()) // C1
    return emitOpError("expected a static type, found ") << getType();
  StringRef layout = getLayout().value_or("");
  if (!llvm::is_contained(kLayouts, layout) && !PackedFormat::named(layout)) // C2
    return emitOpError("unknown layout '") << *getLayout() << "'";
  return success();
}

LogicalResult DimsOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  size_t count = getExprs().size();
  bool fits =
      type && type.getElementType().isSignlessInteger(64) &&
      (type.getRank() == 0 ? count == 1 : type.getRank() == 1 && type.getDimSize(0) == int64_t(count));
  if (!fits) // C1
    return emitOpError("expected tensor<") << count << "xi64>, found " << getType();
  DimTable table;
  for (StringAttr expr : getExprs().getAsRange<StringAttr>())
    if (!table.parse(expr.getValue())) // C2
      return emitOpError("cannot parse dim expression '") << expr.getValue() << "'";
  return success();
}

LogicalResult KernelOp::verify() {
  if (!findOp(std::string_view(getName().data(), getName().size()))) // C1
    return emitOpError("the operator catalogue has no '") << getName() << "'";
  if (RegisteredOperationName::lookup(("dspark." + getName()).str(), getContext())) // C1
    return emitOpError("expected dspark.") << getName() << ", the typed operation of that name";
  return verifyAgainstCatalogue(getOperation());
}

LogicalResult FusedOp::verify() {
  Block &block = getBody().front();
  if (failed(verifyBlockArguments(*this, block, getOperandTypes()))) // C1
    return failure();
  for (Operation &op : block.without_terminator()) { // C2
    bool isReduction = isa<ReduceOp, SoftmaxOp, LayerNormOp>(op);
    if (!isReduction && !isa<UnaryOp, BinaryOp, CompareOp, SelectOp, ClipOp, ConstantOp, NoneOp>(op))
      return emitOpError("the body holds elementwise operations and reductions of rows only, found ")
             << op.getName();
    int64_t axes = isReduction ? rowAxes(&op, infoOf(op.getOperand(0)), TensorInfo()) : 0;
    if (isReduction && (axes == 0 || axes != int64_t(getRowAxes().value_or(0)))) // C5
      return emitOpError("expected reductions over the last row_axes = ")
             << getRowAxes().value_or(0) << " axes, found " << op.getName() << " over "
             << (axes > 0 ? std::to_string(axes) : "others");
  }
  if (failed(verifyYield(*this, block, getResultTypes()))) // C3
    return failure();
  std::vector<TensorInfo> operands;
  for (Value operand : getOperands())
    operands.push_back(infoFromType(operand.getType()));
  InferContext ctx;
  TensorInfo shape;
  if (!broadcastDims(ctx, operands, shape))
    return emitOpError(ctx.error);
  if (!shape.hasRank)
    return success();
  int64_t axes = int64_t(getRowAxes().value_or(0));
  if (axes < 0 || axes > shape.rank()) // C4
    return emitOpError("expected row_axes from 0 to ") << shape.rank() << ", found " << axes;
  std::vector<Dim> dropped(shape.dims.begin(), shape.dims.end() - axes), kept = dropped;
  kept.resize(shape.dims.size(), Dim(1));
  for (auto [index, type] : llvm::enumerate(getResultTypes())) { // C4
    TensorInfo result = infoFromType(type);
    bool isReduced = axes > 0 && (mayHaveDims(result, kept) || mayHaveDims(result, dropped));
    if (!isReduced && !mayHaveDims(result, shape.dims))
      return emitOpError("result ") << index << " expected the operands' broadcast shape "
                                    << shape.str().substr(4) << ", found " << type;
  }
  return success();
}

LogicalResult RegionOp::verify() {
  Block &block = getBody().front();
  if (failed(verifyBlockArguments(*this, block, getInputs().getTypes()))) // C1
    return failure();
  return verifyYield(*this, block, getResultTypes()); // C2
}

LogicalResult TransferOp::verify() {
  if (getSource() == getDestination()) // C1
    return emitOpError("expected two devices, found '") << getSource() << "' twice";
  if (getExecutor() != getSource() && getExecutor() != getDestination()) // C2
    return emitOpError("expected executor '")
           << getSource() << "' or '" << getDestination() << "', found '" << getExecutor() << "'";
  return success();
}

LogicalResult IfOp::verify() {
  if (!isOneBool(getCondition().getType())) // C1
    return emitOpError("expected one i1 element as condition, found ") << getCondition().getType();
  for (Region *region : {&getThenBody(), &getElseBody()}) { // C2
    auto yield = dyn_cast<YieldOp>(region->front().getTerminator());
    if (!yield)
      return emitOpError("expected dspark.yield at the end of the block");
    if (yield.getNumOperands() != getNumResults())
      return emitOpError("expected ")
             << getNumResults() << " yielded values, found " << yield.getNumOperands();
    for (auto [index, yielded, type] : llvm::enumerate(yield.getOperandTypes(), getResultTypes())) {
      if (auto expected = dyn_cast<TensorType>(type)) {
        auto tensor = dyn_cast<TensorType>(yielded);
        if (!tensor || tensor.getElementType() != expected.getElementType())
          return emitOpError("yielded value ")
                 << index << " expected elements of " << expected.getElementType() << ", found " << yielded;
      } else if (!joinTypes(yielded, type)) {
        return emitOpError("yielded value ")
               << index << " expected a value of " << type << ", found " << yielded;
      }
    }
  }
  return success();
}

LogicalResult ListOp::verify() {
  struct Form {
    StringRef op;
    size_t least, most;
  };
  static constexpr Form kForms[] = {
      {"construct", 0, SIZE_MAX}, {"insert", 2, 3}, {"erase", 1, 2},  {"at", 1, 2},
      {"length", 1, 1},           {"split", 1, 2},  {"concat", 1, 1}, {"rows", 2, 2}};
  const Form *form = llvm::find_if(kForms, [&](const Form &form) { return form.op == getOp(); });
  if (form == std::end(kForms)) // C1
    return emitOpError("has no operation '") << getOp() << "' on lists";
  if (getInputs().size() < form->least || getInputs().size() > form->most) // C2
    return emitOpError("expected ") << form->least << " to " << form->most << " operands, found "
                                    << getInputs().size();
  return success();
}

LogicalResult LoopOp::verify() {
  int64_t carried = getNumCarried();
  int64_t scans = int64_t(getInputs().size()) - 2 - carried;
  if (carried < 0 || scans < 0)
    return emitOpError("expected trip count, condition and ")
           << carried << " carried operands, found " << getInputs().size();
  if (carried > int64_t(getNumResults())) // C3
    return emitOpError("expected at most ") << getNumResults() << " carried values, found " << carried;
  Block &block = getBody().front();
  if (int64_t(block.getNumArguments()) != 2 + carried + scans) // C1
    return emitOpError("expected ") << 2 + carried + scans << " block arguments, found "
                                    << block.getNumArguments();
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || yield.getNumOperands() != 1 + getNumResults()) // C2
    return emitOpError("expected ") << 1 + getNumResults() << " yielded values, found "
                                    << (yield ? yield.getNumOperands() : 0);
  return success();
}

} // namespace dspark::ir
