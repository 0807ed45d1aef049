#include "dialects/DSpark/OpFactory.h"
#include "kernels/common/catalogue.h"

using namespace mlir;

namespace dspark::ir {

FailureOr<SmallVector<Value>> OpFactory::make(Location loc, StringRef name, ValueRange operands,
                                              ArrayRef<NamedAttribute> attributes, unsigned results) {
  MLIRContext *context = builder.getContext();
  std::vector<TensorInfo> infos;
  for (Value operand : operands)
    infos.push_back(dims.info(operand));
  AttrList list;
  for (NamedAttribute attribute : attributes)
    list.add(attribute.getName(), attribute.getValue());
  InferContext ctx;
  ctx.in = infos;
  ctx.attrs = list.view();
  if (inferResults(name, results, ctx) == InferStatus::Error) {
    lastError = ctx.error;
    return failure();
  }

  SmallVector<Type> types;
  for (TensorInfo &info : ctx.out) {
    TensorInfo known = info;
    if (ctx.dimsFromKernel) // only upper bounds
      for (Dim &dim : known.dims)
        dim = Dim();
    Type type = typeFromInfo(known, context);
    if (!type) {
      lastError = "'" + name.str() + "' has no result type for its operands";
      return failure();
    }
    types.push_back(type);
    info = std::move(known);
    dims.nameUnknownDims(info);
  }

  Operation *op;
  std::optional<RegisteredOperationName> typed =
      RegisteredOperationName::lookup(("dspark." + name).str(), context);
  if (typed) {
    for (NamedAttribute attribute : attributes)
      if (!llvm::is_contained(typed->getAttributeNames(), attribute.getName())) {
        lastError = "dspark." + name.str() + " has no attribute '" + attribute.getName().str() + "'";
        return failure();
      }
    OperationState state(loc, *typed);
    state.addOperands(operands);
    state.addTypes(types);
    if (!attributes.empty()) // an operation that can have none must not be given any
      state.propertiesAttr = builder.getDictionaryAttr(attributes);
    op = builder.create(state);
  } else {
    op = KernelOp::create(builder, loc, types, builder.getStringAttr(name), operands,
                          attributes.empty() ? DictionaryAttr() : builder.getDictionaryAttr(attributes));
  }
  SmallVector<Value> values(op->getResults());
  for (auto [value, info] : llvm::zip(values, ctx.out))
    dims.setInfo(value, std::move(info));
  return values;
}

Value OpFactory::make1(Location loc, StringRef name, ValueRange operands,
                       ArrayRef<NamedAttribute> attributes) {
  FailureOr<SmallVector<Value>> values = make(loc, name, operands, attributes, 1);
  return succeeded(values) ? values->front() : Value();
}

Value OpFactory::constant(Location loc, DenseElementsAttr value) {
  return ConstantOp::create(builder, loc, value);
}

Value OpFactory::ints(Location loc, ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({int64_t(values.size())}, builder.getI64Type());
  return constant(loc, DenseElementsAttr::get(type, values));
}

Value OpFactory::scalar(Location loc, float value) {
  return constant(loc, DenseElementsAttr::get(RankedTensorType::get({}, builder.getF32Type()), value));
}

Value OpFactory::scalar(Location loc, int64_t value) {
  return constant(loc, DenseElementsAttr::get(RankedTensorType::get({}, builder.getI64Type()), value));
}

FailureOr<Value> OpFactory::constant(Location loc, DType type, ArrayRef<int64_t> shape,
                                     ArrayRef<std::byte> bytes) {
  Type element = mlirType(type, builder.getContext());
  if (!element) {
    lastError = "constants of type " + std::string(dtypeName(type)) + " are not supported";
    return failure();
  }
  auto tensor = RankedTensorType::get(shape, element);
  int64_t elements = tensor.getNumElements();
  if (int64_t(bytes.size()) != dtypeBytes(type, elements)) {
    lastError = "constant has " + std::to_string(bytes.size()) + " bytes, expected " +
                std::to_string(dtypeBytes(type, elements));
    return failure();
  }
  unsigned bits = unsigned(dtypeBits(type));
  if (type == DType::Bool || bits < 8) { // one value at a time: MLIR stores these unlike ONNX
    unsigned width = type == DType::Bool ? 1 : bits;
    SmallVector<APInt> values;
    for (int64_t i = 0; i < elements; ++i) {
      unsigned raw = type == DType::Bool ? unsigned(bytes[size_t(i)] != std::byte(0))
                                         : unsigned(bytes[size_t(i * bits / 8)]) >> (i * bits % 8);
      values.push_back(APInt(width, raw & ((1u << width) - 1)));
    }
    if (auto floatType = dyn_cast<FloatType>(element)) {
      SmallVector<APFloat> floats;
      for (const APInt &value : values)
        floats.push_back(APFloat(floatType.getFloatSemantics(), value));
      return constant(loc, DenseElementsAttr::get(tensor, floats));
    }
    return constant(loc, DenseElementsAttr::get(tensor, values));
  }
  ArrayRef<char> raw(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (elements == 0)
    return constant(loc, DenseElementsAttr::get(tensor, ArrayRef<Attribute>()));
  return constant(loc, DenseElementsAttr::getFromRawBuffer(tensor, raw));
}

Value OpFactory::weight(Location loc, StringRef name, DType type, ArrayRef<int64_t> shape, StringRef layout) {
  auto tensor = RankedTensorType::get(shape, mlirType(type, builder.getContext()));
  return WeightOp::create(builder, loc, tensor, FlatSymbolRefAttr::get(builder.getContext(), name),
                          layout.empty() ? StringAttr() : builder.getStringAttr(layout));
}

Value OpFactory::none(Location loc) { return NoneOp::create(builder, loc, builder.getNoneType()); }

NamedAttribute OpFactory::attr(StringRef name, int64_t value) {
  return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
}
NamedAttribute OpFactory::attr(StringRef name, double value) {
  return builder.getNamedAttr(name, builder.getF64FloatAttr(value));
}
NamedAttribute OpFactory::attr(StringRef name, StringRef value) {
  return builder.getNamedAttr(name, builder.getStringAttr(value));
}
NamedAttribute OpFactory::attr(StringRef name, ArrayRef<int64_t> value) {
  return builder.getNamedAttr(name, builder.getDenseI64ArrayAttr(value));
}
NamedAttribute OpFactory::attr(StringRef name, ArrayRef<double> value) {
  return builder.getNamedAttr(name, builder.getDenseF64ArrayAttr(value));
}

} // namespace dspark::ir
