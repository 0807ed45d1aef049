#include "dialects/DSpark/Infer.h"
#include "kernels/common/catalogue.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace dspark::ir {

Type mlirType(DType type, MLIRContext *context) {
  auto integer = [&](unsigned width, IntegerType::SignednessSemantics sign = IntegerType::Signless) -> Type {
    return IntegerType::get(context, width, sign);
  };
  switch (type) {
  case DType::F32:
    return Float32Type::get(context);
  case DType::F64:
    return Float64Type::get(context);
  case DType::F16:
    return Float16Type::get(context);
  case DType::BF16:
    return BFloat16Type::get(context);
  case DType::F8E4M3FN:
    return Float8E4M3FNType::get(context);
  case DType::F8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case DType::F8E5M2:
    return Float8E5M2Type::get(context);
  case DType::F8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case DType::F8E8M0:
    return Float8E8M0FNUType::get(context);
  case DType::F4E2M1:
    return Float4E2M1FNType::get(context);
  case DType::I2:
    return integer(2);
  case DType::I4:
    return integer(4);
  case DType::I8:
    return integer(8);
  case DType::I16:
    return integer(16);
  case DType::I32:
    return integer(32);
  case DType::I64:
    return integer(64);
  case DType::U2:
    return integer(2, IntegerType::Unsigned);
  case DType::U4:
    return integer(4, IntegerType::Unsigned);
  case DType::U8:
    return integer(8, IntegerType::Unsigned);
  case DType::U16:
    return integer(16, IntegerType::Unsigned);
  case DType::U32:
    return integer(32, IntegerType::Unsigned);
  case DType::U64:
    return integer(64, IntegerType::Unsigned);
  case DType::Bool:
    return integer(1);
  case DType::C64:
    return ComplexType::get(Float32Type::get(context));
  case DType::C128:
    return ComplexType::get(Float64Type::get(context));
  case DType::String:
    return StringType::get(context);
  case DType::Undefined:
    return Type();
  }
  return Type();
}

DType dtypeOf(Type type) {
  for (int code = 1; code < kDTypeCount; ++code)
    if (mlirType(DType(code), type.getContext()) == type)
      return DType(code);
  return DType::Undefined;
}

TensorInfo infoFromType(Type type) {
  TensorInfo info;
  auto tensor = dyn_cast<TensorType>(type);
  if (!tensor)
    return info;
  info.type = dtypeOf(tensor.getElementType());
  if (!tensor.hasRank())
    return info;
  info.hasRank = true;
  for (int64_t dim : tensor.getShape())
    info.dims.push_back(ShapedType::isDynamic(dim) ? Dim() : Dim(dim));
  return info;
}

TensorType typeFromInfo(const TensorInfo &info, MLIRContext *context) {
  Type element = mlirType(info.type, context);
  if (!element)
    return TensorType();
  if (!info.hasRank)
    return UnrankedTensorType::get(element);
  SmallVector<int64_t> shape;
  for (Dim dim : info.dims)
    shape.push_back(dim.isConst() ? dim.value() : ShapedType::kDynamic);
  return RankedTensorType::get(shape, element);
}

int listDepth(Type type) {
  int depth = 0;
  for (; isList(type); ++depth)
    type = isa<SequenceType>(type)   ? cast<SequenceType>(type).getItem()
           : isa<OptionalType>(type) ? cast<OptionalType>(type).getItem()
                                     : cast<MapType>(type).getValues();
  return depth;
}

bool isList(Type type) { return isa<SequenceType, OptionalType, MapType>(type); }

Type joinTypes(Type a, Type b) {
  if (a == b)
    return a;
  if (auto x = dyn_cast<SequenceType>(a); x && isa<SequenceType>(b)) {
    Type item = joinTypes(x.getItem(), cast<SequenceType>(b).getItem());
    return item ? SequenceType::get(a.getContext(), item) : Type();
  }
  if (auto x = dyn_cast<OptionalType>(a); x && isa<OptionalType>(b)) {
    Type item = joinTypes(x.getItem(), cast<OptionalType>(b).getItem());
    return item ? OptionalType::get(a.getContext(), item) : Type();
  }
  auto x = dyn_cast<TensorType>(a), y = dyn_cast<TensorType>(b);
  if (!x || !y || x.getElementType() != y.getElementType())
    return Type();
  if (!x.hasRank() || !y.hasRank() || x.getRank() != y.getRank())
    return UnrankedTensorType::get(x.getElementType());
  SmallVector<int64_t> shape;
  for (auto [m, n] : llvm::zip(x.getShape(), y.getShape()))
    shape.push_back(m == n ? m : ShapedType::kDynamic);
  return RankedTensorType::get(shape, x.getElementType());
}

void addContents(TensorInfo &info, ElementsAttr value) {
  if (value.getNumElements() > kMaxKnownElements)
    return;
  Type element = value.getElementType();
  if (element.isF32()) { // as below, without an APFloat for each
    auto values = value.tryGetValues<float>();
    if (!values)
      return;
    info.floats.assign(values->begin(), values->end());
    info.hasContents = true;
  } else if (isa<FloatType>(element)) {
    auto values = value.tryGetValues<APFloat>();
    if (!values)
      return;
    for (APFloat v : *values) {
      bool loses;
      v.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
      info.floats.push_back(v.convertToDouble());
    }
    info.hasContents = true;
  } else if (auto integer = dyn_cast<IntegerType>(element)) {
    auto values = value.tryGetValues<APInt>();
    if (!values)
      return;
    bool isUnsigned = integer.isUnsigned() || integer.getWidth() == 1;
    for (const APInt &v : *values) {
      // A u64 above the signed range is no dim that anyone can use.
      bool fits = !isUnsigned || v.getActiveBits() < 64;
      info.ints.push_back(!fits ? Dim() : Dim(isUnsigned ? int64_t(v.getZExtValue()) : v.getSExtValue()));
    }
    info.hasContents = true;
  }
}

TensorInfo infoOf(Value value) {
  TensorInfo info = infoFromType(value.getType());
  if (auto constant = value.getDefiningOp<ConstantOp>())
    addContents(info, constant.getValue());
  return info;
}

std::vector<std::byte> literalBytes(ElementsAttr value) {
  DType type = dtypeOf(value.getElementType());
  int64_t elements = value.getNumElements();
  unsigned bits = unsigned(dtypeBits(type));
  std::vector<std::byte> bytes(size_t(dtypeBytes(type, elements)));
  int64_t index = 0;
  auto put = [&](const APInt &raw) {
    if (bits < 8) {
      unsigned shift = unsigned(index * bits % 8);
      bytes[size_t(index * bits / 8)] |= std::byte(raw.getZExtValue() << shift);
    } else {
      size_t width = bits / 8;
      uint64_t word = raw.getZExtValue();
      std::memcpy(bytes.data() + size_t(index) * width, &word, width);
    }
    ++index;
  };
  if (isa<ComplexType>(value.getElementType())) {
    auto dense = cast<DenseElementsAttr>(value);
    ArrayRef<char> raw = dense.getRawData();
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = std::byte(raw[dense.isSplat() ? i % raw.size() : i]);
  } else if (isa<FloatType>(value.getElementType())) {
    for (APFloat v : value.getValues<APFloat>())
      put(v.bitcastToAPInt());
  } else {
    for (const APInt &v : value.getValues<APInt>())
      put(v);
  }
  return bytes;
}

void AttrList::add(StringRef name, Attribute value) {
  Attr attr;
  bool isList = false;
  auto setInts = [&](std::vector<int64_t> values) { attr.ints = ints.emplace_back(std::move(values)); };
  auto setFloats = [&](std::vector<double> values) { attr.floats = floats.emplace_back(std::move(values)); };
  TypeSwitch<Attribute>(value)
      .Case([&](BoolAttr a) { setInts({a.getValue() ? 1 : 0}); })
      .Case([&](IntegerAttr a) { setInts({a.getValue().getSExtValue()}); })
      .Case([&](FloatAttr a) { setFloats({a.getValueAsDouble()}); })
      .Case([&](StringAttr a) { attr.str = names.emplace_back(a.getValue().str()); })
      .Case([&](UnitAttr) { setInts({1}); })
      .Case([&](TypeAttr a) { setInts({int64_t(dtypeOf(a.getValue()))}); })
      .Case([&](DenseI64ArrayAttr a) {
        isList = true;
        setInts({a.asArrayRef().begin(), a.asArrayRef().end()});
      })
      .Case([&](DenseF64ArrayAttr a) {
        isList = true;
        setFloats({a.asArrayRef().begin(), a.asArrayRef().end()});
      });
  attr.name = names.emplace_back(name.str());
  list.push_back(attr);
  lists.push_back(isList);
}

void AttrList::add(DictionaryAttr attributes) {
  if (attributes)
    for (NamedAttribute attr : attributes)
      add(attr.getName(), attr.getValue());
}

StringRef catalogueName(Operation *op) {
  if (auto kernel = dyn_cast<KernelOp>(op))
    return kernel.getName();
  return op->getName().stripDialect();
}

void catalogueAttributes(Operation *op, AttrList &attributes) {
  if (auto kernel = dyn_cast<KernelOp>(op))
    attributes.add(kernel.getConfigAttr());
  else
    attributes.add(op->getAttrDictionary());
}

InferStatus inferResults(StringRef name, size_t results, InferContext &ctx) {
  const OpEntry *entry = findOp(std::string_view(name.data(), name.size()));
  if (!entry)
    return ctx.fail("the operator catalogue has no '" + name.str() + "'");
  ctx.out.assign(results, TensorInfo());
  return inferWith(*entry, ctx);
}

namespace {

// Whether a declared result type can hold what the shape function says.
bool isCompatible(TensorType declared, const TensorInfo &inferred) {
  if (dtypeOf(declared.getElementType()) != inferred.type)
    return false;
  if (!declared.hasRank() || !inferred.hasRank)
    return true;
  if (declared.getRank() != inferred.rank())
    return false;
  for (auto [declaredDim, dim] : llvm::zip(declared.getShape(), inferred.dims))
    if (!ShapedType::isDynamic(declaredDim) && dim.isConst() && dim.value() != declaredDim)
      return false;
  return true;
}

} // namespace

LogicalResult verifyAgainstCatalogue(Operation *op) {
  StringRef name = catalogueName(op);
  std::vector<TensorInfo> operands;
  for (Value operand : op->getOperands())
    operands.push_back(infoOf(operand));
  AttrList attributes;
  catalogueAttributes(op, attributes);
  InferContext ctx;
  ctx.in = operands;
  ctx.attrs = attributes.view();
  switch (inferResults(name, op->getNumResults(), ctx)) {
  case InferStatus::Error:
    return op->emitOpError(ctx.error);
  case InferStatus::NeedsContents:
    return success();
  case InferStatus::Ok:
    break;
  }
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    const TensorInfo &inferred = ctx.out[index];
    if (!inferred.present() || ctx.dimsFromKernel)
      continue;
    if (!isCompatible(cast<TensorType>(result.getType()), inferred))
      return op->emitOpError("result ")
             << index << " expected " << inferred.str() << " from its operands, found " << result.getType();
  }
  return success();
}

double catalogueFlops(Operation *op, ArrayRef<TensorInfo> in, ArrayRef<TensorInfo> out) {
  if (out.empty() || !out[0].hasRank)
    return 0;
  Dim elements = out[0].elements();
  Dim perElement(1);
  if (isa<MatmulOp, MatmulDequantOp>(op)) {
    if (!in[0].hasRank || in[0].dims.empty())
      return 0;
    auto transposed = op->getAttrOfType<IntegerAttr>("trans_a");
    bool transA = transposed && transposed.getInt() != 0 && in[0].rank() >= 2;
    perElement = in[0].dims[in[0].rank() - (transA ? 2 : 1)] * Dim(2);
  } else if (isa<ConvOp>(op)) {
    if (in.size() < 2 || !in[1].hasRank || in[1].dims.empty())
      return 0;
    perElement = dimProduct(in[1].dims, 1, in[1].dims.size()) * Dim(2);
  } else if (isa<ReduceOp, SoftmaxOp, LayerNormOp>(op)) {
    elements = in[0].elements();
  }
  Dim flops = elements * perElement;
  return flops.isConst() ? double(flops.value()) : 0;
}

bool isLegalPrecision(Operation *op, Type type) {
  DType code = dtypeOf(type);
  if (isa<MatmulOp, ConvOp, ConvTransposeOp, LstmOp, GruOp, RnnOp>(op))
    return code == DType::F32 || code == DType::F64 || code == DType::F16 || code == DType::BF16;
  return isFloat(code);
}

} // namespace dspark::ir
