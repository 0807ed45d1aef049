#include "compiler/Recovery/Probe.h"
#include "kernels/common/numeric.h"
#include <cstring>

using namespace mlir;

namespace dspark::recovery {
namespace {

constexpr int kDeepest = 2000; // operations behind one another
constexpr int64_t kMostElements = int64_t(1) << 24;

HostBytes integersOf(DType type, std::vector<int64_t> dims, const std::vector<int64_t> &values) {
  HostBytes made{type, std::move(dims), {}};
  made.bytes.resize(size_t(dtypeBytes(type, int64_t(values.size()))));
  if (type == DType::I64) {
    std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
    return made;
  }
  std::vector<double> wide(values.begin(), values.end());
  storeFromF64(type, made.bytes.data(), 0, int64_t(wide.size()), wide.data());
  return made;
}

std::vector<double> numbers(const HostBytes &value) {
  int64_t count = 1;
  for (int64_t dim : value.dims)
    count *= dim;
  std::vector<double> wide(static_cast<size_t>(count));
  loadAsF64(value.type, value.bytes.data(), 0, count, wide.data());
  return wide;
}

std::vector<int64_t> integersIn(const HostBytes &value) {
  if (value.type != DType::I64) {
    std::vector<double> wide = numbers(value);
    return {wide.begin(), wide.end()};
  }
  std::vector<int64_t> exact(value.bytes.size() /
                             sizeof(int64_t)); // doubles would round the far ends of slices
  std::memcpy(exact.data(), value.bytes.data(), value.bytes.size());
  return exact;
}

TensorInfo infoOf(const HostBytes &value) {
  if (value.type == DType::Undefined)
    return {};
  TensorInfo info = TensorInfo::make(value.type, {value.dims.begin(), value.dims.end()});
  Dim elements = info.elements();
  if (!elements.isConst() || elements.value() > kMaxKnownElements)
    return info;
  info.hasContents = true;
  if (isFloat(value.type))
    info.floats = numbers(value);
  else
    for (int64_t number : integersIn(value))
      info.ints.push_back(Dim(number));
  return info;
}

} // namespace

std::optional<int64_t> numberOf(Dim dim, const std::map<std::string, int64_t> &symbols) {
  if (dim.isConst())
    return dim.value();
  if (dim.isUnknown())
    return std::nullopt;
  const DimNode *node = dim.node();
  if (node->op == DimOp::Symbol) {
    auto found = symbols.find(node->table->symbols()[size_t(node->value)]);
    return found == symbols.end() ? std::nullopt : std::optional(found->second);
  }
  if (node->op == DimOp::Const)
    return node->value;
  std::optional<int64_t> a = numberOf(Dim(node->lhs), symbols), b = numberOf(Dim(node->rhs), symbols);
  return a && b ? evaluateDimOp(node->op, *a, *b) : std::nullopt;
}

void Probe::setInput(Value argument, std::vector<int64_t> dims, const std::vector<int64_t> &values) {
  DType type = ir::dtypeOf(cast<TensorType>(argument.getType()).getElementType());
  setInput(argument, integersOf(type, std::move(dims), values));
}

const HostBytes *Probe::value(Value value) {
  auto found = known.find(value.getAsOpaquePointer());
  if (found != known.end())
    return &found->second;
  Operation *op = value.getDefiningOp();
  if (!op || depth >= kDeepest)
    return nullptr;
  ++depth;
  bool isComputed = compute(op);
  --depth;
  return isComputed ? &known[value.getAsOpaquePointer()] : nullptr;
}

std::optional<std::vector<int64_t>> Probe::integers(Value of) {
  const HostBytes *found = value(of);
  if (!found || isFloat(found->type) || found->type == DType::Undefined)
    return std::nullopt;
  return integersIn(*found);
}

bool Probe::compute(Operation *op) {
  HostBytes &result = known[op->getResult(0).getAsOpaquePointer()];
  auto give = [&](HostBytes made) {
    result = std::move(made);
    return true;
  };
  if (isa<ir::NoneOp>(op))
    return true;
  if (auto constant = dyn_cast<ir::ConstantOp>(op)) {
    auto type = cast<ShapedType>(constant.getType());
    return give(
        {ir::dtypeOf(type.getElementType()), type.getShape().vec(), ir::literalBytes(constant.getValue())});
  }
  if (auto weight = dyn_cast<ir::WeightOp>(op)) {
    std::string error;
    auto bytes = weight.getLayout().value_or("").empty() ? weights.read(weight.getWeight().str(), error)
                                                         : std::nullopt;
    auto type = cast<ShapedType>(weight.getType());
    if (bytes)
      return give({ir::dtypeOf(type.getElementType()),
                   type.getShape().vec(),
                   {bytes->bytes().begin(), bytes->bytes().end()}});
  } else if (auto dims = dyn_cast<ir::DimsOp>(op)) {
    std::vector<int64_t> values;
    for (Dim dim : analysis.info(dims.getResult()).ints)
      if (std::optional<int64_t> number = numberOf(dim, symbols))
        values.push_back(*number);
    auto type = cast<RankedTensorType>(dims.getType());
    if (int64_t(values.size()) == type.getNumElements())
      return give(integersOf(DType::I64, type.getShape().vec(), values));
  } else if (isa<ir::ShapeInterface>(op) && computeCatalogue(op)) {
    return true;
  }
  for (Value made : op->getResults())
    known.erase(made.getAsOpaquePointer());
  return false;
}

bool Probe::computeCatalogue(Operation *op) {
  std::vector<HostBytes> operands;
  std::vector<TensorInfo> infos;
  for (Value operand : op->getOperands()) {
    const HostBytes *found = value(operand);
    if (!found)
      return false;
    operands.push_back(*found);
    infos.push_back(infoOf(*found));
  }
  ir::AttrList attributes;
  ir::catalogueAttributes(op, attributes);
  InferContext ctx;
  ctx.in = infos;
  ctx.attrs = attributes.view();
  StringRef name = ir::catalogueName(op);
  if (ir::inferResults(name, op->getNumResults(), ctx) != InferStatus::Ok || ctx.dimsFromKernel)
    return false;
  std::vector<HostBytes> results;
  for (const TensorInfo &info : ctx.out) {
    Dim elements = info.elements();
    if (!info.hasRank || !elements.isConst() || elements.value() > kMostElements)
      return false;
    HostBytes made{info.type, {}, {}};
    for (Dim dim : info.dims)
      made.dims.push_back(dim.value());
    results.push_back(std::move(made));
  }
  std::string error;
  if (!evaluate(std::string_view(name.data(), name.size()), ctx.attrs, operands, results, error))
    return false;
  for (auto [value, made] : llvm::zip(op->getResults(), results))
    known[value.getAsOpaquePointer()] = std::move(made);
  return true;
}

} // namespace dspark::recovery
