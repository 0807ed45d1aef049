#include "compiler/Support/QuantizedValue.h"
#include <limits>

using namespace mlir;

namespace dspark {
namespace {

bool isByte(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  return integer && integer.getWidth() == 8;
}
Type elementOf(Value value) {
  auto type = dyn_cast<TensorType>(value.getType());
  return type ? type.getElementType() : Type();
}

bool hasOneElement(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() && type.getNumElements() == 1;
}

// Operands 1 and 2 of a quantize_linear or dequantize_linear with one scale.
std::optional<QuantizedValue> parametersOf(Operation *op, Value q) {
  auto block = op->getAttrOfType<IntegerAttr>("block_size");
  if ((block && block.getInt() != 0) || !elementOf(q) || !isByte(elementOf(q)))
    return std::nullopt;
  Value scale = op->getOperand(1);
  Value zero =
      op->getNumOperands() > 2 && isa<TensorType>(op->getOperand(2).getType()) ? op->getOperand(2) : Value();
  if (!hasOneElement(scale) || !elementOf(scale).isF32() || (zero && !hasOneElement(zero)))
    return std::nullopt;
  return QuantizedValue{q, scale, zero};
}

DenseElementsAttr constantOf(Value value) {
  auto constant = value.getDefiningOp<ir::ConstantOp>();
  return constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
}

} // namespace

std::optional<QuantizedValue> QuantizedValue::of(Value value) {
  auto op = value.getDefiningOp<ir::DequantizeOp>();
  if (!op || !elementOf(value) || !elementOf(value).isF32())
    return std::nullopt;
  return parametersOf(op, op.getInputs()[0]);
}

std::optional<QuantizedValue> QuantizedValue::madeBy(Operation *op) {
  auto quantize = dyn_cast<ir::QuantizeOp>(op);
  if (!quantize || !elementOf(quantize.getInputs()[0]).isF32() ||
      (quantize.getPrecision().value_or(0) != 0 && quantize.getPrecision() != uint64_t(DType::F32)))
    return std::nullopt;
  return parametersOf(op, op->getResult(0));
}

DType QuantizedValue::type() const { return ir::dtypeOf(elementOf(q)); }

Value QuantizedValue::zeroOperand(Location loc, ir::OpFactory &factory) const {
  if (zero)
    return zero;
  std::byte nothing{};
  return *factory.constant(loc, type(), ArrayRef<int64_t>(), ArrayRef(nothing));
}

std::optional<float> QuantizedValue::scaleNumber() const { return constantFloat(scale); }
std::optional<int> QuantizedValue::zeroNumber() const {
  std::optional<int64_t> number = zero ? constantInt(zero) : std::optional<int64_t>(0);
  return number ? std::optional(int(*number)) : std::nullopt;
}

bool QuantizedValue::hasSameParameters(const QuantizedValue &other) const {
  if (type() != other.type())
    return false;
  if (scale == other.scale && zero == other.zero)
    return true;
  std::optional<float> a = scaleNumber(), b = other.scaleNumber();
  std::optional<int> c = zeroNumber(), d = other.zeroNumber();
  return a && b && *a == *b && c && d && *c == *d;
}

bool movesFirstOperand(Operation *op) {
  if (auto pool = dyn_cast<ir::PoolOp>(op))
    return pool.getKind() == "max";
  if (auto resize = dyn_cast<ir::ResizeOp>(op))
    return resize.getMode().value_or("nearest") == "nearest" &&
           resize.getCoordinateTransformationMode().value_or("") != "tf_crop_and_resize";
  if (auto kernel = dyn_cast<ir::KernelOp>(op))
    return llvm::is_contained({"flatten", "depth_to_space", "space_to_depth"}, kernel.getName());
  return isa<ir::ReshapeOp, ir::SqueezeOp, ir::UnsqueezeOp, ir::IdentityOp, ir::TransposeOp, ir::SliceOp,
             ir::ExpandOp, ir::GatherOp>(op);
}

std::optional<float> constantFloat(Value value) {
  DenseElementsAttr elements = constantOf(value);
  if (!elements || elements.getNumElements() != 1 || !elements.getElementType().isF32())
    return std::nullopt;
  return *elements.getValues<float>().begin();
}

std::optional<int64_t> constantInt(Value value) {
  DenseElementsAttr elements = constantOf(value);
  auto type = elements ? dyn_cast<IntegerType>(elements.getElementType()) : IntegerType();
  if (!type || elements.getNumElements() != 1)
    return std::nullopt;
  APInt number = *elements.getValues<APInt>().begin();
  return type.isUnsigned() ? int64_t(number.getZExtValue()) : number.getSExtValue();
}

std::optional<float> splatNumber(Value value) {
  if (DenseElementsAttr elements = constantOf(value)) {
    if (!elements.isSplat() || !elements.getElementType().isF32())
      return std::nullopt;
    return elements.getSplatValue<float>();
  }
  std::optional<QuantizedValue> quantized = QuantizedValue::of(value);
  DenseElementsAttr elements = quantized ? constantOf(quantized->q) : DenseElementsAttr();
  std::optional<float> scale = quantized ? quantized->scaleNumber() : std::nullopt;
  std::optional<int> zero = quantized ? quantized->zeroNumber() : std::nullopt;
  if (!elements || !elements.isSplat() || !scale || !zero)
    return std::nullopt;
  APInt number = elements.getSplatValue<APInt>();
  bool isUnsigned = cast<IntegerType>(elements.getElementType()).isUnsigned();
  int64_t q = isUnsigned ? int64_t(number.getZExtValue()) : number.getSExtValue();
  return float(q - *zero) * *scale;
}

std::optional<Bounds> Bounds::of(Operation *op, Value value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (op->getNumOperands() == 0 || op->getOperand(0) != value)
    return std::nullopt;
  if (auto unary = dyn_cast<ir::UnaryOp>(op))
    return unary.getKind() == "relu" ? std::optional(Bounds{0, kInfinity}) : std::nullopt;
  auto clip = dyn_cast<ir::ClipOp>(op);
  if (!clip)
    return std::nullopt;
  Bounds bounds{-kInfinity, kInfinity};
  for (unsigned i = 1; i < clip.getInputs().size(); ++i) {
    if (isa<NoneType>(clip.getInputs()[i].getType()))
      continue;
    std::optional<float> bound = splatNumber(clip.getInputs()[i]);
    if (!bound)
      return std::nullopt;
    (i == 1 ? bounds.low : bounds.high) = double(*bound);
  }
  return bounds;
}

bool Bounds::isRelu() const { return low == 0 && high == std::numeric_limits<double>::infinity(); }

} // namespace dspark
