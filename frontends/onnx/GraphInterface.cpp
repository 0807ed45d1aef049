// The outermost graph: its inputs, outputs and dim symbols.
#include "dialects/DSpark/Infer.h"
#include "frontends/onnx/GraphImporter.h"

namespace dspark::onnx {

using Kind = ImportIssue::Kind;

constexpr int kMaxListDepth = 4; // as the plan file has it

/// `text` as an identifier that dim expressions can hold.
static std::string identifier(const std::string &text) {
  std::string name;
  for (unsigned char c : text)
    name += std::isalnum(c) ? char(c) : '_';
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ? "_" + name : name;
}

/// The dims entry of one axis: a number, or a symbol. Dims with equal names are equal; dims without a name
/// ("", "?", 0 and negative numbers) are called <input>_<axis>.
std::string GraphImporter::dimText(const ::onnx::ValueInfoProto &input, int axis) {
  const auto &dim = input.type().tensor_type().shape().dim(axis);
  if (dim.dim_value() > 0)
    return std::to_string(dim.dim_value());
  bool isNamed = !dim.dim_param().empty() && dim.dim_param() != "?";
  std::string own = identifier(input.name()) + "_" + std::to_string(axis);
  std::string key = isNamed ? "p:" + dim.dim_param() : "a:" + own;
  auto [entry, isNew] = symbols.try_emplace(key);
  if (isNew) {
    std::string base = isNamed ? identifier(dim.dim_param()) : own;
    entry->second = base;
    for (int suffix = 1; !symbolNames.insert(entry->second).second; ++suffix)
      entry->second = base + "_" + std::to_string(suffix);
  }
  for (const std::string &name : {isNamed ? dim.dim_param() : own, entry->second})
    if (auto fixed = options.dims.find(name); fixed != options.dims.end()) {
      usedOverrides.insert(name);
      return std::to_string(fixed->second);
    }
  return entry->second;
}

mlir::Type GraphImporter::elementType(int code, std::string &problem) {
  mlir::Type element =
      code > 0 && code < kDTypeCount ? ir::mlirType(DType(code), opBuilder.getContext()) : mlir::Type();
  if (!element)
    problem = "element type " + std::to_string(code) + " is not known";
  return element;
}

/// Tensors within lists tell what is the same in all of them, so the names of their dims mean nothing.
mlir::Type GraphImporter::valueType(const ::onnx::TypeProto &type, std::string &problem) {
  mlir::MLIRContext *context = opBuilder.getContext();
  if (type.has_sequence_type()) {
    mlir::Type item = valueType(type.sequence_type().elem_type(), problem);
    return item ? ir::SequenceType::get(context, item) : mlir::Type();
  }
  if (type.has_optional_type()) {
    mlir::Type item = valueType(type.optional_type().elem_type(), problem);
    return item ? ir::OptionalType::get(context, item) : mlir::Type();
  }
  if (type.has_map_type()) {
    auto column = [](mlir::Type element) -> mlir::Type {
      return element ? mlir::RankedTensorType::get({mlir::ShapedType::kDynamic}, element) : mlir::Type();
    };
    mlir::Type keys = column(elementType(type.map_type().key_type(), problem));
    const ::onnx::TypeProto &value = type.map_type().value_type();
    if (!value.has_tensor_type())
      problem = "maps to other things than single numbers and strings are not supported";
    mlir::Type values = column(elementType(value.tensor_type().elem_type(), problem));
    return problem.empty() ? ir::MapType::get(context, keys, values) : mlir::Type();
  }
  if (!type.has_tensor_type()) {
    problem = type.has_sparse_tensor_type() ? "sparse tensor types are not supported" : "it has no type";
    return {};
  }
  mlir::Type element = elementType(type.tensor_type().elem_type(), problem);
  if (!element)
    return {};
  if (!type.tensor_type().has_shape())
    return mlir::UnrankedTensorType::get(element);
  llvm::SmallVector<int64_t> shape;
  for (const auto &dim : type.tensor_type().shape().dim())
    shape.push_back(dim.dim_value() > 0 ? dim.dim_value() : mlir::ShapedType::kDynamic);
  if (shape.size() > size_t(kMaxRank)) {
    problem = "rank " + std::to_string(shape.size()) + " is above " + std::to_string(kMaxRank);
    return {};
  }
  return mlir::RankedTensorType::get(shape, element);
}

mlir::Type GraphImporter::inputType(const ::onnx::ValueInfoProto &input, mlir::ArrayAttr &dims) {
  std::string where = "input '" + input.name() + "'";
  const auto &type = input.type();
  if (type.value_case() == ::onnx::TypeProto::VALUE_NOT_SET ||
      (type.has_tensor_type() && type.tensor_type().elem_type() == 0)) {
    issue(Kind::Invalid, where + " has no type");
    return {};
  }
  if (!type.has_tensor_type()) {
    std::string problem;
    mlir::Type found = valueType(type, problem);
    if (found && ir::listDepth(found) > kMaxListDepth)
      problem = "lists are nested " + std::to_string(ir::listDepth(found)) + " deep; at most " +
                std::to_string(kMaxListDepth) + " are supported";
    if (!problem.empty())
      issue(Kind::Unsupported, where + ": " + problem);
    return problem.empty() ? found : mlir::Type();
  }
  std::string problem;
  int code = type.tensor_type().elem_type();
  mlir::Type element = elementType(code, problem);
  if (!element) {
    issue(Kind::Unsupported, where + ": " + problem);
    return {};
  }
  if (!type.tensor_type().has_shape())
    return mlir::UnrankedTensorType::get(element);
  int rank = type.tensor_type().shape().dim_size();
  if (rank > kMaxRank) {
    issue(Kind::Unsupported, where + " has rank " + std::to_string(rank) + "; at most " +
                                 std::to_string(kMaxRank) + " is supported");
    return {};
  }
  llvm::SmallVector<int64_t> shape;
  std::vector<int64_t> known;
  llvm::SmallVector<mlir::Attribute> texts;
  for (int axis = 0; axis < rank; ++axis) {
    std::string text = dimText(input, axis);
    int64_t number;
    bool isSymbol = llvm::StringRef(text).getAsInteger(10, number);
    shape.push_back(isSymbol ? mlir::ShapedType::kDynamic : number);
    if (!isSymbol)
      known.push_back(number);
    texts.push_back(opBuilder.getStringAttr(text));
  }
  if (elementCount(known, DType(code)) < 0) {
    issue(Kind::Invalid, where + " has more elements than 64 bits can count");
    return {};
  }
  dims = opBuilder.getArrayAttr(texts);
  return mlir::RankedTensorType::get(shape, element);
}

void GraphImporter::importInputs(Scope &scope, const ::onnx::GraphProto &graph) {
  std::set<std::string_view>
      given; // initializers that are inputs as well only have a default value: it is used
  for (const auto &tensor : graph.initializer())
    given.insert(tensor.name());
  for (const auto &tensor : graph.sparse_initializer())
    given.insert(tensor.values().name());
  for (const auto &input : graph.input()) {
    if (given.contains(input.name()))
      continue;
    if (input.name().empty()) {
      issue(Kind::Invalid, "an input of the graph has no name");
      continue;
    }
    mlir::ArrayAttr dims;
    mlir::Type type = inputType(input, dims);
    if (!type) {
      define(scope, input.name(), {{}, true});
      continue;
    }
    unsigned index = main.getNumArguments();
    auto attributes = opBuilder.getDictionaryAttr(
        opBuilder.getNamedAttr(ir::kNameAttr, opBuilder.getStringAttr(input.name())));
    mlir::Location loc = mlir::NameLoc::get(opBuilder.getStringAttr(input.name()));
    if (mlir::failed(main.insertArgument(index, type, attributes, loc)))
      return issue(Kind::Invalid, "input '" + input.name() + "' cannot be added");
    if (dims)
      main.setArgAttr(index, ir::kDimsAttr, dims);
    analysis.bindArgument(main, index);
    define(scope, input.name(), {main.getArgument(index)});
  }
  for (const auto &[name, value] : options.dims) {
    if (value < 1)
      issue(Kind::Invalid,
            "dim '" + name + "' is fixed to " + std::to_string(value) + "; at least 1 is needed");
    if (!usedOverrides.contains(name))
      issue(Kind::Invalid, "the model has no dim '" + name + "'; it has: " +
                               (symbolNames.empty() ? "none" : llvm::join(symbolNames, ", ")));
  }
}

void GraphImporter::importOutputs(Scope &scope, const ::onnx::GraphProto &graph) {
  if (graph.output().empty())
    issue(Kind::Invalid, "the graph has no outputs");
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<mlir::DictionaryAttr> attributes;
  std::set<std::string_view> seen;
  for (const auto &output : graph.output()) {
    if (!seen.insert(output.name()).second)
      issue(Kind::Invalid, "output '" + output.name() + "' is listed twice");
    const Imported *found = lookUp(scope, output.name());
    if (!found)
      issue(Kind::Invalid, "output '" + output.name() + "' is made by no node");
    if (!found || !found->value)
      continue;
    std::string problem;
    mlir::Type type = output.type().has_tensor_type() ? mlir::Type() : valueType(output.type(), problem);
    if (type && !ir::joinTypes(type, found->value.getType()))
      issue(Kind::Invalid, "output '" + output.name() + "' is declared as " + typeText(type) +
                               " but its node makes " + typeText(found->value.getType()));
    DType declared = DType(output.type().tensor_type().elem_type()), made = analysis.info(found->value).type;
    if (declared != DType::Undefined && declared != made)
      issue(Kind::Invalid, "output '" + output.name() + "' is declared as element type " +
                               std::to_string(int(declared)) + " but its node makes " +
                               std::string(dtypeName(made)));
    values.push_back(found->value);
    attributes.push_back(opBuilder.getDictionaryAttr(
        opBuilder.getNamedAttr(ir::kNameAttr, opBuilder.getStringAttr(output.name()))));
  }
  if (!result.issues.empty())
    return;
  mlir::func::ReturnOp::create(opBuilder, main.getLoc(), values);
  main.setType(opBuilder.getFunctionType(main.getArgumentTypes(), mlir::ValueRange(values).getTypes()));
  mlir::function_interface_impl::setAllResultAttrDicts(main, attributes);
}

void GraphImporter::run() {
  const ::onnx::GraphProto &graph = model.proto.graph();
  mlir::Location loc = mlir::NameLoc::get(opBuilder.getStringAttr(graph.name()));
  result.module = mlir::ModuleOp::create(loc);
  opBuilder.setInsertionPointToEnd(result.module->getBody());
  main = mlir::func::FuncOp::create(opBuilder, loc, "main", opBuilder.getFunctionType({}, {}));
  opBuilder.setInsertionPointToEnd(main.addEntryBlock());

  AttributeScope noAttributes;
  Opsets opsets = opsetsOf(model.proto.opset_import(), model.proto.ir_version());
  Scope scope(nullptr, noAttributes, opsets);
  importInputs(scope, graph);
  importInitializers(scope, graph);
  importNodes(scope, graph.node());
  importOutputs(scope, graph);
}

} // namespace dspark::onnx
