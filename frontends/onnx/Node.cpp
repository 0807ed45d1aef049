#include "frontends/onnx/Node.h"
#include "frontends/onnx/AttributeSpec.h"
#include "frontends/onnx/GraphImporter.h"
#include "kernels/common/catalogue.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <cmath>
#include <cstring>

namespace dspark::onnx {

using ::onnx::AttributeProto;

std::string typeText(mlir::Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

Node::Node(GraphImporter &importer, const ::onnx::NodeProto &proto, const OpRow &row, int64_t version,
           const AttributeScope &scope, mlir::Location loc, Values inputs)
    : graph(importer), node(proto), tableRow(row), opset(version), scope(scope), location(loc),
      operands(std::move(inputs)) {
  // Absent operands and results at the end are as if they were not listed.
  while (!operands.empty() && !operands.back())
    operands.pop_back();
  int count = node.output_size();
  while (count > 0 && node.output(count - 1).empty())
    --count;
  results.resize(size_t(count));
}

// --- Attributes ---

const AttributeProto *Node::attribute(std::string_view name) const {
  return findAttribute(node, name, scope);
}

int64_t Node::i(std::string_view name, int64_t otherwise) const {
  const AttributeProto *found = attribute(name);
  return found && found->type() == AttributeProto::INT ? found->i() : otherwise;
}
double Node::f(std::string_view name, double otherwise) const {
  const AttributeProto *found = attribute(name);
  return found && found->type() == AttributeProto::FLOAT ? double(found->f()) : otherwise;
}
std::string Node::s(std::string_view name, std::string_view otherwise) const {
  const AttributeProto *found = attribute(name);
  return found && found->type() == AttributeProto::STRING ? found->s() : std::string(otherwise);
}
std::vector<int64_t> Node::ints(std::string_view name) const {
  const AttributeProto *found = attribute(name);
  return found ? std::vector<int64_t>(found->ints().begin(), found->ints().end()) : std::vector<int64_t>();
}
std::vector<std::string> Node::strings(std::string_view name) const {
  const AttributeProto *found = attribute(name);
  return found ? std::vector<std::string>(found->strings().begin(), found->strings().end())
               : std::vector<std::string>();
}
std::vector<double> Node::floats(std::string_view name) const {
  const AttributeProto *found = attribute(name);
  return found ? std::vector<double>(found->floats().begin(), found->floats().end()) : std::vector<double>();
}

mlir::NamedAttribute Node::attr(std::string_view name, int64_t value) const {
  return graph.ops().attr(name, value);
}
mlir::NamedAttribute Node::attr(std::string_view name, double value) const {
  return graph.ops().attr(name, value);
}
mlir::NamedAttribute Node::attr(std::string_view name, std::string_view value) const {
  return graph.ops().attr(name, llvm::StringRef(value));
}
mlir::NamedAttribute Node::attr(std::string_view name, const std::vector<int64_t> &values) const {
  return graph.ops().attr(name, llvm::ArrayRef<int64_t>(values));
}
mlir::NamedAttribute Node::attr(std::string_view name, const std::vector<double> &values) const {
  return graph.ops().attr(name, llvm::ArrayRef<double>(values));
}

Attributes Node::pick(std::string_view names) {
  Attributes picked;
  for (AttributeSpec spec; nextSpec(names, spec);) {
    const AttributeProto *found = attribute(spec.name);
    if (!found || spec.passed.empty())
      continue;
    switch (found->type()) {
    case AttributeProto::INT:
      picked.push_back(attr(spec.passed, found->i()));
      break;
    case AttributeProto::FLOAT:
      picked.push_back(attr(spec.passed, double(found->f())));
      break;
    case AttributeProto::STRING:
      picked.push_back(attr(spec.passed, found->s()));
      break;
    case AttributeProto::INTS:
      picked.push_back(attr(spec.passed, ints(spec.name)));
      break;
    case AttributeProto::FLOATS:
      picked.push_back(graph.ops().attr(spec.passed, llvm::ArrayRef<double>(floats(spec.name))));
      break;
    case AttributeProto::STRINGS:
      picked.push_back(attr(spec.passed, llvm::join(found->strings().begin(), found->strings().end(), ",")));
      break;
    case AttributeProto::TENSOR:
      pickTensor(spec.passed, found->t(), picked);
      break;
    default: // graphs are never passed on as they are
      break;
    }
  }
  return picked;
}

template <typename To, typename From> static std::vector<To> widen(std::span<const std::byte> bytes) {
  std::vector<To> values;
  for (size_t at = 0; at < bytes.size(); at += sizeof(From)) {
    From value;
    std::memcpy(&value, bytes.data() + at, sizeof(From));
    values.push_back(To(value));
  }
  return values;
}

/// A tensor becomes a list of numbers; its dims are lost.
void Node::pickTensor(std::string_view name, const ::onnx::TensorProto &tensor, Attributes &picked) {
  auto data = graph.tensors().read(tensor);
  if (!data.isOk())
    return data.status().code() == Code::Unsupported ? unsupported(data.status().message())
                                                     : invalid(data.status().message());
  std::span<const std::byte> bytes = bytesOf(*data);
  auto addFloats = [&](const std::vector<double> &values) {
    picked.push_back(graph.ops().attr(name, llvm::ArrayRef<double>(values)));
  };
  switch (data->type) {
  case DType::F32:
    return addFloats(widen<double, float>(bytes));
  case DType::F64:
    return addFloats(widen<double, double>(bytes));
  case DType::I64:
    return picked.push_back(attr(name, widen<int64_t, int64_t>(bytes)));
  case DType::I32:
    return picked.push_back(attr(name, widen<int64_t, int32_t>(bytes)));
  case DType::I16:
    return picked.push_back(attr(name, widen<int64_t, int16_t>(bytes)));
  case DType::I8:
    return picked.push_back(attr(name, widen<int64_t, int8_t>(bytes)));
  case DType::U8:
  case DType::Bool:
    return picked.push_back(attr(name, widen<int64_t, uint8_t>(bytes)));
  default:
    unsupported("attribute '" + std::string(name) + "' of element type " +
                std::string(dtypeName(data->type)) + " is not supported");
  }
}

// --- Building ---

TensorInfo Node::info(mlir::Value value) const { return value ? graph.dims().info(value) : TensorInfo(); }

std::optional<int64_t> Node::rank(mlir::Value value) const {
  TensorInfo known = info(value);
  return known.hasRank ? std::optional<int64_t>(known.rank()) : std::nullopt;
}

Values Node::emit(std::string_view entry, const Values &operands, Attributes attributes, size_t numResults) {
  Values none(std::max<size_t>(1, numResults));
  if (failed())
    return none;
  Values given = operands;
  while (!given.empty() && !given.back())
    given.pop_back();
  for (auto [index, operand] : llvm::enumerate(given)) {
    if (!operand)
      operand = graph.none(location);
    if (ir::isList(operand.getType())) {
      invalid("operand " + std::to_string(index) + " of " + std::string(entry) + " is " +
              typeText(operand.getType()) + "; expected a tensor");
      return none;
    }
  }
  auto made = graph.ops().make(location, entry, given, attributes, unsigned(numResults));
  if (mlir::failed(made)) {
    if (!findOp(entry))
      unsupported("there is no kernel for '" + std::string(entry) + "' yet");
    else
      invalid(graph.ops().error());
    return none;
  }
  return Values(made->begin(), made->end());
}

mlir::Value Node::listOp(std::string_view op, const Values &operands, mlir::Type result,
                         Attributes attributes) {
  if (failed())
    return {};
  Values given = operands;
  while (!given.empty() && !given.back())
    given.pop_back();
  for (mlir::Value &operand : given)
    if (!operand)
      operand = graph.none(location);
  mlir::OpBuilder &builder = graph.builder();
  auto made =
      ir::ListOp::create(builder, location, result, builder.getStringAttr(llvm::StringRef(op)), given,
                         attributes.empty() ? mlir::DictionaryAttr() : builder.getDictionaryAttr(attributes));
  graph.dims().visit(made);
  return made.getOutput();
}

mlir::Value Node::bytes(DType type, const std::vector<int64_t> &dims, std::span<const std::byte> data) {
  if (failed())
    return {};
  if (int64_t(data.size()) > ir::kMaxConstantBytes) {
    invalid("a list of " + std::to_string(data.size()) + " bytes where at most " +
            std::to_string(ir::kMaxConstantBytes) + " make sense");
    return {};
  }
  return graph.smallConstant(location, type, dims, data);
}

mlir::Value Node::list(const std::vector<int64_t> &values) {
  return bytes(DType::I64, {int64_t(values.size())}, std::as_bytes(std::span(values)));
}
mlir::Value Node::floatList(const std::vector<double> &values) {
  std::vector<float> narrow(values.begin(), values.end());
  return bytes(DType::F32, {int64_t(values.size())}, std::as_bytes(std::span(narrow)));
}
mlir::Value Node::stringList(const std::vector<std::string> &values) {
  return failed() ? mlir::Value() : graph.strings(location, {int64_t(values.size())}, values);
}
mlir::Value Node::stringScalar(const std::string &value) {
  return failed() ? mlir::Value() : graph.strings(location, {}, {value});
}
mlir::Value Node::intScalar(int64_t value) {
  return bytes(DType::I64, {}, std::as_bytes(std::span(&value, 1)));
}

mlir::Value Node::scalar(DType type, double value) {
  mlir::Type element = ir::mlirType(type, location.getContext());
  if (failed() || !element || !element.isIntOrFloat()) {
    unsupported("a constant of element type " + std::string(dtypeName(type)) + " is needed");
    return {};
  }
  mlir::Attribute attribute;
  if (auto floatType = mlir::dyn_cast<mlir::FloatType>(element))
    attribute = mlir::FloatAttr::get(floatType, value);
  else { // 2^63 is the first double that i64 cannot hold
    double inRange = std::isnan(value) ? 0 : std::clamp(value, -0x1p63, std::nextafter(0x1p63, 0));
    llvm::APInt bits(element.getIntOrFloatBitWidth(), uint64_t(int64_t(inRange)), false,
                     /*implicitTrunc=*/true);
    attribute = mlir::IntegerAttr::get(element, bits);
  }
  return graph.splat(location, mlir::RankedTensorType::get({}, element), attribute);
}

// --- Checks ---

static AttributeProto::AttributeType typeOf(char letter) {
  switch (letter) {
  case 'i':
    return AttributeProto::INT;
  case 'f':
    return AttributeProto::FLOAT;
  case 's':
    return AttributeProto::STRING;
  case 't':
    return AttributeProto::TENSOR;
  case 'p':
    return AttributeProto::SPARSE_TENSOR;
  case 'g':
    return AttributeProto::GRAPH;
  case 'I':
    return AttributeProto::INTS;
  case 'F':
    return AttributeProto::FLOATS;
  case 'S':
    return AttributeProto::STRINGS;
  case 'y':
    return AttributeProto::TYPE_PROTO;
  default:
    return AttributeProto::UNDEFINED;
  }
}

static void checkAttributes(Node &n) {
  std::string_view words = n.row().attributes;
  std::set<std::string_view> known = {"consumed_inputs"}; // of opset 1; never had a meaning
  for (AttributeSpec spec; nextSpec(words, spec);) {
    known.insert(spec.name);
    const AttributeProto *found = n.attribute(spec.name);
    if (!found && spec.required)
      return n.invalid("attribute '" + std::string(spec.name) + "' is missing");
    if (found && found->type() != typeOf(spec.type))
      return n.invalid("attribute '" + std::string(spec.name) + "' is of type " +
                       AttributeProto::AttributeType_Name(found->type()) + "; expected " +
                       AttributeProto::AttributeType_Name(typeOf(spec.type)));
  }
  std::set<std::string_view> seen;
  for (const AttributeProto &attribute : n.proto().attribute()) {
    if (!known.contains(attribute.name()))
      return n.invalid("attribute '" + attribute.name() + "' is not one of " + n.proto().op_type() +
                       " in opset " + std::to_string(n.version()));
    if (!seen.insert(attribute.name()).second)
      return n.invalid("attribute '" + attribute.name() + "' is given twice");
  }
}

static void checkOperands(Node &n) {
  const Arity &arity = n.row().arity;
  auto range = [](int low, int high) {
    if (high == kVariadic)
      return "at least " + std::to_string(low);
    return low == high ? std::to_string(low) : std::to_string(low) + " to " + std::to_string(high);
  };
  if (n.numInputs() < arity.minIn || (arity.maxIn != kVariadic && n.numInputs() > arity.maxIn))
    return n.invalid("has " + std::to_string(n.numInputs()) + " operands; expected " +
                     range(arity.minIn, arity.maxIn));
  if (arity.maxOut != kVariadic && n.numOutputs() > arity.maxOut)
    return n.invalid("has " + std::to_string(n.numOutputs()) + " results; expected " +
                     range(1, arity.maxOut));
  for (size_t i = 0; i < n.numInputs(); ++i)
    if (!n.has(i) && (i < arity.minIn || arity.maxIn == kVariadic))
      return n.invalid("operand " + std::to_string(i) + " is required");
}

void buildNode(Node &n) {
  const OpRow &row = n.row();
  checkOperands(n);
  if (!n.failed())
    checkAttributes(n);
  if (n.failed())
    return;
  if (row.build)
    return row.build(n);
  Attributes attributes = n.pick(row.attributes);
  if (!row.kind.empty())
    attributes.push_back(n.attr("kind", row.kind));
  n.outs(n.emit(row.entry, n.inputs(), attributes, std::max<size_t>(n.numOutputs(), row.arity.minOut)));
}

} // namespace dspark::onnx
