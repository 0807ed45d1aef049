#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/GraphOrder.h"

namespace dspark::onnx {

using ::onnx::NodeProto;
using Kind = ImportIssue::Kind;

/// Of all graphs together, functions inlined. A function that calls another twice, and so on 30 levels deep,
/// would otherwise fill the memory.
static constexpr int64_t kMaxNodes = 1'000'000;

const ::onnx::AttributeProto *findAttribute(const NodeProto &node, std::string_view name,
                                            const AttributeScope &scope) {
  for (const auto &attribute : node.attribute()) {
    if (attribute.name() != name)
      continue;
    if (attribute.ref_attr_name().empty())
      return &attribute;
    auto given = scope.find(attribute.ref_attr_name());
    return given == scope.end() ? nullptr : given->second;
  }
  return nullptr;
}

static std::string plainDomain(const std::string &domain) { return domain == "ai.onnx" ? "" : domain; }

GraphImporter::GraphImporter(Model &model, mlir::MLIRContext &context, const ImportOptions &options,
                             ImportResult &result)
    : model(model), options(options), result(result), opBuilder(&context), factory(opBuilder, analysis),
      nodesLeft(kMaxNodes) {
  for (const auto &function : model.proto.functions())
    functions[{plainDomain(function.domain()), function.name(), function.overload()}] = &function;
}

GraphImporter::Opsets
GraphImporter::opsetsOf(const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto> &imports,
                        int64_t irVersion) {
  Opsets opsets;
  for (const auto &import : imports)
    opsets[plainDomain(import.domain())] = import.version();
  if (irVersion < 3) // which had no imports
    opsets.try_emplace("", 1);
  return opsets;
}

// --- Issues and names ---

void GraphImporter::issue(Kind kind, const std::string &reason) {
  ImportIssue found;
  found.kind = kind;
  found.reason = reason;
  result.issues.push_back(std::move(found));
}

void GraphImporter::issue(Kind kind, const Scope &scope, const NodeProto &node, int index,
                          llvm::ArrayRef<Imported> operands, const std::string &reason) {
  ImportIssue found;
  found.kind = kind;
  found.node = scope.nameOf(node, index);
  std::string domain = plainDomain(node.domain());
  found.op = domain.empty() ? node.op_type() : domain + "." + node.op_type();
  if (auto opset = scope.opsets->find(domain); opset != scope.opsets->end())
    found.opset = opset->second;
  for (const Imported &operand : operands)
    found.operands.push_back(operand.poisoned ? "?"
                             : operand.value  ? analysis.info(operand.value).str()
                                              : "absent");
  found.reason = reason;
  result.issues.push_back(std::move(found));
}

std::string GraphImporter::Scope::nameOf(const NodeProto &node, int index) const {
  return (node.name().empty() ? graphPath : callPath) + nodeName(node, index);
}

const Imported *GraphImporter::lookUp(const Scope &scope, std::string_view name) const {
  for (const Scope *at = &scope; at; at = at->outer)
    if (auto found = at->values.find(name); found != at->values.end())
      return &found->second;
  return nullptr;
}

void GraphImporter::define(Scope &scope, const std::string &name, Imported value) {
  if (!name.empty() && !scope.values.emplace(name, value).second)
    issue(Kind::Invalid, "value '" + name + "' is made twice");
}

// --- Nodes ---

void GraphImporter::poisonResults(Scope &scope, const NodeProto &node) {
  for (const std::string &name : node.output())
    define(scope, name, {{}, true});
}

void GraphImporter::importNodes(Scope &scope, const google::protobuf::RepeatedPtrField<NodeProto> &nodes) {
  auto order = nodeOrder(nodes);
  if (!order.isOk()) {
    issue(Kind::Invalid, order.status().message());
    for (const NodeProto &node : nodes)
      for (const std::string &name : node.output())
        scope.values.emplace(name, Imported{{}, true});
    return;
  }
  for (int index : *order) {
    if (--nodesLeft == 0)
      issue(Kind::Invalid, "more than " + std::to_string(kMaxNodes) + " nodes after functions are inlined");
    if (nodesLeft <= 0)
      poisonResults(scope, nodes[index]);
    else
      importNode(scope, nodes[index], index);
  }
}

void GraphImporter::importNode(Scope &scope, const NodeProto &node, int index) {
  llvm::SmallVector<Imported> operands;
  for (const std::string &name : node.input()) {
    if (name.empty()) {
      operands.push_back({});
      continue;
    }
    const Imported *found = lookUp(scope, name);
    if (!found)
      issue(Kind::Invalid, scope, node, index, {}, "reads '" + name + "', which nothing makes");
    operands.push_back(found ? *found : Imported{{}, true});
  }
  auto function = functions.find({plainDomain(node.domain()), node.op_type(), node.overload()});
  if (function != functions.end())
    importCall(scope, node, index, *function->second, operands);
  else
    importOperator(scope, node, index, operands);
}

/// Why the table has no row for a node; empty, with `row` set, if it has one.
std::string GraphImporter::findOperator(const Scope &scope, const NodeProto &node, const OpRow *&row,
                                        int64_t &version) const {
  std::string domain = plainDomain(node.domain());
  std::string shown = domain.empty() ? "ai.onnx" : domain;
  auto opset = scope.opsets->find(domain);
  // Files often forget to import domains other than the default one; these have one version only.
  version = opset != scope.opsets->end() ? opset->second : 1;
  if (opset == scope.opsets->end() && domain.empty())
    return "the opset of " + shown + " is not imported";
  bool onlyNewer = false;
  row = findRow(domain, node.op_type(), version, &onlyNewer);
  if (row)
    return row->refusal ? row->refusal : "";
  return onlyNewer ? "the operator came after opset " + std::to_string(version) + " of " + shown
                   : "no operator of that name is known in " + shown;
}

void GraphImporter::importOperator(Scope &scope, const NodeProto &node, int index,
                                   llvm::ArrayRef<Imported> operands) {
  const OpRow *row = nullptr;
  int64_t version = 1;
  std::string refusal = findOperator(scope, node, row, version);
  if (!refusal.empty())
    issue(Kind::Unsupported, scope, node, index, operands, refusal);
  bool isPoisoned = llvm::any_of(operands, [](const Imported &operand) { return operand.poisoned; });
  if (!refusal.empty() || isPoisoned) {
    lookInside(scope, node, index);
    return poisonResults(scope, node);
  }

  Values values;
  for (const Imported &operand : operands)
    values.push_back(operand.value);
  mlir::Location loc = mlir::NameLoc::get(opBuilder.getStringAttr(scope.nameOf(node, index)));
  Node n(*this, node, *row, version, *scope.attributes, loc, std::move(values));
  const Scope *outer = std::exchange(current, &scope);
  buildNode(n);
  current = outer;
  if (n.failed())
    issue(n.isInvalid() ? Kind::Invalid : Kind::Unsupported, scope, node, index, operands, n.reason());
  for (int i = 0; i < node.output_size(); ++i) {
    mlir::Value value = size_t(i) < n.outputs().size() ? n.outputs()[i] : mlir::Value();
    if (!value && !n.failed() && !n.isPoisoned() && n.wants(i))
      issue(Kind::Unsupported, scope, node, index, operands,
            "result " + std::to_string(i) + " is not supported");
    define(scope, node.output(i), {value, !value});
  }
}

/// A node that is not built may still hold graphs with nodes that are not supported.
void GraphImporter::lookInside(Scope &scope, const NodeProto &node, int index) {
  for (const auto &attribute : node.attribute()) {
    if (!attribute.has_g())
      continue;
    mlir::Region scratch;
    mlir::OpBuilder::InsertionGuard guard(opBuilder);
    opBuilder.createBlock(&scratch);
    Scope inner(&scope, *scope.attributes, *scope.opsets);
    inner.callPath = scope.callPath;
    inner.graphPath = scope.nameOf(node, index) + "/";
    for (const auto &input : attribute.g().input())
      define(inner, input.name(), {{}, true});
    importInitializers(inner, attribute.g());
    importNodes(inner, attribute.g().node());
    scratch.dropAllReferences();
  }
}

std::optional<Values> GraphImporter::body(Node &n, const ::onnx::GraphProto &graph, mlir::Block &block,
                                          const Values &arguments) {
  if (graph.input_size() != int(arguments.size())) {
    n.invalid("its graph '" + graph.name() + "' has " + std::to_string(graph.input_size()) +
              " inputs; expected " + std::to_string(arguments.size()));
    return std::nullopt;
  }
  mlir::OpBuilder::InsertionGuard guard(opBuilder);
  opBuilder.setInsertionPointToEnd(&block);
  Scope inner(current, *current->attributes, *current->opsets);
  inner.callPath = current->callPath;
  inner.graphPath =
      current->graphPath + (n.proto().name().empty() ? n.proto().op_type() : n.proto().name()) + "/";
  size_t before = result.issues.size();
  for (int i = 0; i < graph.input_size(); ++i)
    define(inner, graph.input(i).name(), {arguments[i]});
  importInitializers(inner, graph);
  importNodes(inner, graph.node());
  Values outputs;
  for (const auto &output : graph.output()) {
    const Imported *found = lookUp(inner, output.name());
    if (!found || (!found->poisoned && !found->value))
      n.invalid("its graph '" + graph.name() + "' does not make its output '" + output.name() + "'");
    outputs.push_back(found ? found->value : mlir::Value());
  }
  if (!n.failed() && (result.issues.size() > before || llvm::is_contained(outputs, mlir::Value())))
    n.poison();
  return n.failed() || n.isPoisoned() ? std::nullopt : std::optional(std::move(outputs));
}

void GraphImporter::importCall(Scope &scope, const NodeProto &node, int index,
                               const ::onnx::FunctionProto &function, llvm::ArrayRef<Imported> operands) {
  auto refuse = [&](const std::string &reason) {
    issue(Kind::Invalid, scope, node, index, operands, reason);
    poisonResults(scope, node);
  };
  if (llvm::is_contained(calls, &function))
    return refuse("function '" + function.name() + "' calls itself");
  if (int(operands.size()) > function.input_size() || node.output_size() > function.output_size())
    return refuse("has " + std::to_string(operands.size()) + " operands and " +
                  std::to_string(node.output_size()) + " results; function '" + function.name() + "' has " +
                  std::to_string(function.input_size()) + " and " + std::to_string(function.output_size()));

  AttributeScope attributes;
  for (const auto &standard : function.attribute_proto())
    attributes[standard.name()] = &standard;
  for (const auto &given : node.attribute())
    if (const auto *found = findAttribute(node, given.name(), *scope.attributes))
      attributes[given.name()] = found;
  Opsets opsets = opsetsOf(function.opset_import(), model.proto.ir_version());
  Scope inner(nullptr, attributes, opsets);
  inner.callPath = inner.graphPath = scope.nameOf(node, index) + "/";
  for (int i = 0; i < function.input_size(); ++i)
    define(inner, function.input(i), size_t(i) < operands.size() ? operands[i] : Imported());
  calls.push_back(&function);
  importNodes(inner, function.node());
  calls.pop_back();
  for (int i = 0; i < node.output_size(); ++i) {
    const Imported *found = lookUp(inner, function.output(i));
    if (!found && !node.output(i).empty())
      issue(Kind::Invalid, scope, node, index, operands,
            "function '" + function.name() + "' does not make its output '" + function.output(i) + "'");
    define(scope, node.output(i), found ? *found : Imported{{}, true});
  }
}

} // namespace dspark::onnx
