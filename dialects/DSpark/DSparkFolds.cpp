// Folds: local simplifications that are always right and never grow the IR.
#include "dialects/DSpark/DSpark.h"
#include "dialects/DSpark/Infer.h"

using namespace mlir;

namespace dspark::ir {
namespace {

// The single result may be replaced by `value` only if no type information is lost or invented.
OpFoldResult replaceWith(Operation *op, Value value) {
  return value.getType() == op->getResult(0).getType() ? OpFoldResult(value) : OpFoldResult();
}

// The value of a constant whose elements are all the same float.
std::optional<double> splatFloat(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : DenseFPElementsAttr();
  if (!elements || !elements.isSplat())
    return std::nullopt;
  return elements.getSplatValue<APFloat>().convertToDouble();
}

OpFoldResult foldOne(IdentityOp op) { return replaceWith(op, op.getInputs()[0]); }

// relu(relu(x)) -> relu(x); neg(neg(x)) -> x
OpFoldResult foldOne(UnaryOp op) {
  auto inner = op.getInputs()[0].getDefiningOp<UnaryOp>();
  if (!inner || inner.getKind() != op.getKind())
    return {};
  if (op.getKind() == "relu" || op.getKind() == "abs")
    return replaceWith(op, inner->getResult(0));
  if (op.getKind() == "neg" || op.getKind() == "not")
    return replaceWith(op, inner.getInputs()[0]);
  return {};
}

// x*1, x/1, x-0 and x + (-0) -> x. Not x+0: -0 + 0 is 0, another bit pattern.
OpFoldResult foldOne(BinaryOp op) {
  if (op.getInputs().size() != 2)
    return {};
  Value a = op.getInputs()[0], b = op.getInputs()[1];
  StringRef kind = op.getKind();
  std::optional<double> right = splatFloat(b), left = splatFloat(a);
  if (right && ((kind == "mul" && *right == 1) || (kind == "div" && *right == 1) ||
                (kind == "sub" && *right == 0 && !std::signbit(*right)) ||
                (kind == "add" && *right == 0 && std::signbit(*right))))
    return replaceWith(op, a);
  if (left && ((kind == "mul" && *left == 1) || (kind == "add" && *left == 0 && std::signbit(*left))))
    return replaceWith(op, b);
  return {};
}

// A cast to the type x already has.
OpFoldResult foldOne(CastOp op) { return replaceWith(op, op.getInputs()[0]); }

// A reshape that keeps a static shape.
OpFoldResult foldOne(ReshapeOp op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || !type.hasStaticShape())
    return {};
  return replaceWith(op, op.getInputs()[0]);
}

// transpose by the identity -> x; transpose of transpose -> one transpose (in place)
OpFoldResult foldOne(TransposeOp op) {
  std::optional<ArrayRef<int64_t>> perm = op.getPerm();
  if (!perm)
    return {};
  bool isIdentity = true;
  for (auto [index, axis] : llvm::enumerate(*perm))
    isIdentity &= int64_t(index) == axis;
  if (isIdentity)
    return replaceWith(op, op.getInputs()[0]);
  auto inner = op.getInputs()[0].getDefiningOp<TransposeOp>();
  if (!inner || !inner.getPerm() || inner.getPerm()->size() != perm->size())
    return {};
  SmallVector<int64_t> both;
  for (int64_t axis : *perm) {
    if (axis < 0 || axis >= int64_t(perm->size()))
      return {};
    both.push_back((*inner.getPerm())[axis]);
  }
  op.setPermAttr(DenseI64ArrayAttr::get(op.getContext(), both));
  op.getInputsMutable().assign(inner.getInputs());
  return op->getResult(0); // changed in place
}

OpFoldResult foldOne(ConcatOp op) {
  return op.getInputs().size() == 1 ? replaceWith(op, op.getInputs()[0]) : OpFoldResult();
}

// An expand that keeps a static shape.
OpFoldResult foldOne(ExpandOp op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || !type.hasStaticShape())
    return {};
  return replaceWith(op, op.getInputs()[0]);
}

} // namespace

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

// dims whose expressions are all numbers -> constant
OpFoldResult DimsOp::fold(FoldAdaptor) {
  SmallVector<int64_t> numbers;
  for (StringAttr expr : getExprs().getAsRange<StringAttr>()) {
    int64_t number;
    if (expr.getValue().getAsInteger(10, number))
      return {};
    numbers.push_back(number);
  }
  return DenseElementsAttr::get(cast<RankedTensorType>(getType()), ArrayRef(numbers));
}

// Catalogue operations have variadic results; these folds concern the first and only one.
template <typename OpT> static LogicalResult foldSingle(OpT op, SmallVectorImpl<OpFoldResult> &results) {
  OpFoldResult folded = op->getNumResults() == 1 ? foldOne(op) : OpFoldResult();
  if (!folded)
    return failure();
  if (auto value = dyn_cast<Value>(folded); !value || value != op->getResult(0))
    results.push_back(folded);
  return success();
}

LogicalResult IdentityOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult> &results) {
  return foldSingle(*this, results);
}
LogicalResult UnaryOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult> &results) {
  return foldSingle(*this, results);
}
LogicalResult BinaryOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult> &results) {
  return foldSingle(*this, results);
}
LogicalResult CastOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult> &results) {
  return foldSingle(*this, results);
}
LogicalResult ReshapeOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult> &results) {
  return foldSingle(*this, results);
}
LogicalResult TransposeOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult> &results) {
  return foldSingle(*this, results);
}
LogicalResult ConcatOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult> &results) {
  return foldSingle(*this, results);
}
LogicalResult ExpandOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult> &results) {
  return foldSingle(*this, results);
}

} // namespace dspark::ir
