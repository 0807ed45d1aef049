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

OpFoldResult IdentityOp::fold(FoldAdaptor) { return replaceWith(*this, getInputs()[0]); }

// relu(relu(x)) -> relu(x); neg(neg(x)) -> x
OpFoldResult UnaryOp::fold(FoldAdaptor) {
  auto inner = getInputs()[0].getDefiningOp<UnaryOp>();
  if (!inner || inner.getKind() != getKind())
    return {};
  if (getKind() == "relu" || getKind() == "abs")
    return replaceWith(*this, inner->getResult(0));
  if (getKind() == "neg" || getKind() == "not")
    return replaceWith(*this, inner.getInputs()[0]);
  return {};
}

// x*1, x/1, x-0 and x + (-0) -> x. Not x+0: -0 + 0 is 0, another bit pattern.
OpFoldResult BinaryOp::fold(FoldAdaptor) {
  if (getInputs().size() != 2)
    return {};
  Value a = getInputs()[0], b = getInputs()[1];
  StringRef kind = getKind();
  std::optional<double> right = splatFloat(b), left = splatFloat(a);
  if (right && ((kind == "mul" && *right == 1) || (kind == "div" && *right == 1) ||
                (kind == "sub" && *right == 0 && !std::signbit(*right)) ||
                (kind == "add" && *right == 0 && std::signbit(*right))))
    return replaceWith(*this, a);
  if (left && ((kind == "mul" && *left == 1) || (kind == "add" && *left == 0 && std::signbit(*left))))
    return replaceWith(*this, b);
  return {};
}

// A cast to the type x already has.
OpFoldResult CastOp::fold(FoldAdaptor) { return replaceWith(*this, getInputs()[0]); }

// A reshape that keeps a static shape.
OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  auto type = dyn_cast<RankedTensorType>(getResult(0).getType());
  if (!type || !type.hasStaticShape())
    return {};
  return replaceWith(*this, getInputs()[0]);
}

// transpose by the identity -> x; transpose of transpose -> one transpose (in place)
OpFoldResult TransposeOp::fold(FoldAdaptor) {
  std::optional<ArrayRef<int64_t>> perm = getPerm();
  if (!perm)
    return {};
  bool isIdentity = true;
  for (auto [index, axis] : llvm::enumerate(*perm))
    isIdentity &= int64_t(index) == axis;
  if (isIdentity)
    return replaceWith(*this, getInputs()[0]);
  auto inner = getInputs()[0].getDefiningOp<TransposeOp>();
  if (!inner || !inner.getPerm() || inner.getPerm()->size() != perm->size())
    return {};
  SmallVector<int64_t> both;
  for (int64_t axis : *perm) {
    if (axis < 0 || axis >= int64_t(perm->size()))
      return {};
    both.push_back((*inner.getPerm())[axis]);
  }
  setPermAttr(DenseI64ArrayAttr::get(getContext(), both));
  getInputsMutable().assign(inner.getInputs());
  return getResult(0);
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getInputs().size() == 1 ? replaceWith(*this, getInputs()[0]) : OpFoldResult();
}

// An expand that keeps a static shape.
OpFoldResult ExpandOp::fold(FoldAdaptor) {
  auto type = dyn_cast<RankedTensorType>(getResult(0).getType());
  if (!type || !type.hasStaticShape())
    return {};
  return replaceWith(*this, getInputs()[0]);
}

} // namespace dspark::ir
