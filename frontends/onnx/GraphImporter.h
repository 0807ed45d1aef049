// Walks an ONNX graph, its subgraphs and the functions it calls, and builds the module. Control-flow rows
// (ops/Control.cpp) come back here for their bodies.
//
// A node that cannot be built leaves its results poisoned: nodes that read them are not built either, but
// still looked up in the table, so that one walk finds everything that is unsupported.
#pragma once
#include "frontends/onnx/Import.h"
#include "frontends/onnx/ModelReader.h"
#include "frontends/onnx/Node.h"
#include <set>

namespace dspark::onnx {

/// The attribute of that name that a node has, following a reference into the calling node's attributes.
const ::onnx::AttributeProto *findAttribute(const ::onnx::NodeProto &node, std::string_view name,
                                            const AttributeScope &scope);

/// A value of the graph. No value and not poisoned: an absent optional operand.
struct Imported {
  mlir::Value value;
  bool poisoned = false;
};

class GraphImporter {
public:
  GraphImporter(Model &model, mlir::MLIRContext &context, const ImportOptions &options, ImportResult &result);

  void run();

  // --- for rows ---
  ir::OpFactory &ops() { return factory; }
  ir::DimAnalysis &dims() { return analysis; }
  mlir::OpBuilder &builder() { return opBuilder; }
  TensorReader &tensors() { return *model.tensors; }
  mlir::Value none(mlir::Location loc);
  mlir::Value smallConstant(mlir::Location loc, DType type, llvm::ArrayRef<int64_t> dims,
                            std::span<const std::byte> bytes);
  mlir::Value strings(mlir::Location loc, std::vector<int64_t> dims, const std::vector<std::string> &values);
  mlir::Value splat(mlir::Location loc, mlir::RankedTensorType type, mlir::Attribute value);
  /// The type that an ONNX type says, without the names of dims; null, with `problem` set, if there is none.
  mlir::Type valueType(const ::onnx::TypeProto &type, std::string &problem);
  /// The tensor of a Constant node; null, with the node refused, if it cannot be read.
  template <typename Proto> mlir::Value constant(Node &n, const Proto &tensor);
  /// A tensor with bytes of its own: a constant where it is small, else a weight under that name or one like
  /// it.
  mlir::Value weight(mlir::Location loc, const std::string &name, Weight data);
  /// A weight whose bytes have a packed layout; `type` is the element type that operators see.
  mlir::Value packedWeight(mlir::Location loc, const std::string &name, Weight data);
  /// The tensor behind a value that is known at compile time; nullopt for all others.
  std::optional<Weight> known(mlir::Value value) const;
  /// Imports `graph` at the end of `block`, whose arguments `arguments` become the graph's inputs, without a
  /// terminator. Returns its outputs; nothing if something in it could not be built (issues say what).
  std::optional<Values> body(Node &n, const ::onnx::GraphProto &graph, mlir::Block &block,
                             const Values &arguments);
  /// Forgets what body() reported since `issueCount()` was that number: for bodies imported a second time.
  size_t issueCount() const { return result.issues.size(); }
  void dropIssues(size_t count) { result.issues.resize(count); }

private:
  using Opsets = std::map<std::string, int64_t, std::less<>>;
  /// Names of one graph. Inner graphs see outer ones; functions see nothing outside.
  struct Scope {
    Scope(const Scope *outer, const AttributeScope &attributes, const Opsets &opsets)
        : outer(outer), attributes(&attributes), opsets(&opsets) {}
    const Scope *outer;
    std::map<std::string, Imported, std::less<>> values;
    const AttributeScope *attributes;
    const Opsets *opsets;
    std::string callPath;  // function calls that lead here, "call/": in front of every node's name
    std::string graphPath; // calls and graphs that lead here: in front of nodes without a name
    std::string nameOf(const ::onnx::NodeProto &node, int index) const;
  };
  static Opsets opsetsOf(const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto> &imports,
                         int64_t irVersion);

  void issue(ImportIssue::Kind kind, const std::string &reason);
  void issue(ImportIssue::Kind kind, const Scope &scope, const ::onnx::NodeProto &node, int index,
             llvm::ArrayRef<Imported> operands, const std::string &reason);
  const Imported *lookUp(const Scope &scope, std::string_view name) const;
  void define(Scope &scope, const std::string &name, Imported value);

  void importInputs(Scope &scope, const ::onnx::GraphProto &graph);
  void importOutputs(Scope &scope, const ::onnx::GraphProto &graph);
  mlir::Type elementType(int code, std::string &problem);
  mlir::Type inputType(const ::onnx::ValueInfoProto &input, mlir::ArrayAttr &dims);
  std::string dimText(const ::onnx::ValueInfoProto &input, int axis);
  void importInitializers(Scope &scope, const ::onnx::GraphProto &graph);
  void importNodes(Scope &scope, const google::protobuf::RepeatedPtrField<::onnx::NodeProto> &nodes);
  void importNode(Scope &scope, const ::onnx::NodeProto &node, int index);
  void importOperator(Scope &scope, const ::onnx::NodeProto &node, int index,
                      llvm::ArrayRef<Imported> operands);
  std::string findOperator(const Scope &scope, const ::onnx::NodeProto &node, const OpRow *&row,
                           int64_t &version) const;
  void importCall(Scope &scope, const ::onnx::NodeProto &node, int index,
                  const ::onnx::FunctionProto &function, llvm::ArrayRef<Imported> operands);
  void lookInside(Scope &scope, const ::onnx::NodeProto &node, int index);
  void poisonResults(Scope &scope, const ::onnx::NodeProto &node);

  Model &model;
  const ImportOptions &options;
  ImportResult &result;
  mlir::OpBuilder opBuilder;
  ir::DimAnalysis analysis;
  ir::OpFactory factory;
  mlir::func::FuncOp main;
  std::map<std::tuple<std::string, std::string, std::string>, const ::onnx::FunctionProto *> functions;
  std::vector<const ::onnx::FunctionProto *> calls; // being inlined, outermost first
  std::map<std::string, std::string> symbols;       // the model's dim names -> ours
  std::set<std::string> symbolNames, usedOverrides;
  const Scope *current = nullptr; // of the node being built, for body()
  int64_t nodesLeft;
};

} // namespace dspark::onnx
