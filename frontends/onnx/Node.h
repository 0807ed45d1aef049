// One ONNX node on its way into the dialect: what a row of the operator table sees.
//
// Rows neither throw nor return errors. The first call of unsupported() or invalid() is what the report says
// about the node; from then on emit() does nothing and returns null values, so a row may simply go on.
#pragma once
#include "dialects/DSpark/OpFactory.h"
#include "frontends/onnx/OpTable.h"
#include <map>
#include <onnx-ml.pb.h>
#include <optional>

namespace dspark::onnx {

class GraphImporter;

/// Attributes of the function call that is being inlined, by name: what `ref_attr_name` refers to.
using AttributeScope = std::map<std::string, const ::onnx::AttributeProto *, std::less<>>;

/// An operand or attribute of an operation about to be made.
using Values = llvm::SmallVector<mlir::Value, 4>;
using Attributes = llvm::SmallVector<mlir::NamedAttribute, 4>;

class Node {
public:
  Node(GraphImporter &importer, const ::onnx::NodeProto &proto, const OpRow &row, int64_t version,
       const AttributeScope &scope, mlir::Location loc, Values inputs);

  // --- the node ---
  const ::onnx::NodeProto &proto() const { return node; }
  /// Of the operator set the node's domain is imported in.
  int64_t version() const { return opset; }
  const OpRow &row() const { return tableRow; }
  GraphImporter &importer() { return graph; }
  mlir::Location loc() const { return location; }
  size_t numInputs() const { return operands.size(); }
  size_t numOutputs() const { return results.size(); }
  bool has(size_t i) const { return i < operands.size() && operands[i]; }
  bool wants(size_t i) const { return i < results.size() && !node.output(int(i)).empty(); }
  mlir::Value in(size_t i) const { return i < operands.size() ? operands[i] : mlir::Value(); }
  const Values &inputs() const { return operands; }

  // --- its attributes; those of another type than asked for count as absent (the table's check has refused
  // them) ---
  const ::onnx::AttributeProto *attribute(std::string_view name) const;
  bool hasAttribute(std::string_view name) const { return attribute(name); }
  int64_t i(std::string_view name, int64_t otherwise) const;
  double f(std::string_view name, double otherwise) const;
  std::string s(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> ints(std::string_view name) const;
  std::vector<std::string> strings(std::string_view name) const;
  std::vector<double> floats(std::string_view name) const;

  // --- what is known about a value ---
  TensorInfo info(mlir::Value value) const;
  std::optional<int64_t> rank(mlir::Value value) const;
  DType type(mlir::Value value) const { return info(value).type; }

  // --- building; null operands are absent ones ---
  Values emit(std::string_view entry, const Values &operands, Attributes attributes = {},
              size_t numResults = 1);
  mlir::Value one(std::string_view entry, const Values &operands, Attributes attributes = {}) {
    return emit(entry, operands, std::move(attributes))[0];
  }
  /// dspark.list: what is done to sequences, optionals and maps.
  mlir::Value listOp(std::string_view op, const Values &operands, mlir::Type result,
                     Attributes attributes = {});
  mlir::Value unary(std::string_view kind, mlir::Value x) { return one("unary", {x}, {attr("kind", kind)}); }
  mlir::Value binary(std::string_view kind, mlir::Value a, mlir::Value b) {
    return one("binary", {a, b}, {attr("kind", kind)});
  }
  mlir::Value compare(std::string_view kind, mlir::Value a, mlir::Value b) {
    return one("compare", {a, b}, {attr("kind", kind)});
  }
  mlir::Value cast(mlir::Value x, DType type) { return one("cast", {x}, {attr("to", int64_t(type))}); }
  mlir::Value reduce(std::string_view kind, mlir::Value x, const std::vector<int64_t> &axes,
                     bool keepdims = true) {
    return one("reduce", {x}, {attr("kind", kind), attr("axes", axes), attr("keepdims", int64_t(keepdims))});
  }
  /// `x` with the dims of `like`.
  mlir::Value reshapeLike(mlir::Value x, mlir::Value like) {
    return one("reshape", {x, one("shape", {like})});
  }
  /// 1-D constants of i64 and f32.
  mlir::Value list(const std::vector<int64_t> &values);
  mlir::Value floatList(const std::vector<double> &values);
  mlir::Value intScalar(int64_t value);
  /// A 1-D constant of strings; a scalar.
  mlir::Value stringList(const std::vector<std::string> &values);
  mlir::Value stringScalar(const std::string &value);
  /// Scalar of a type, rounded to it once.
  mlir::Value scalar(DType type, double value);
  mlir::Value scalarLike(mlir::Value x, double value) { return scalar(type(x), value); }

  mlir::NamedAttribute attr(std::string_view name, int64_t value) const;
  mlir::NamedAttribute attr(std::string_view name, double value) const;
  mlir::NamedAttribute attr(std::string_view name, std::string_view value) const;
  mlir::NamedAttribute attr(std::string_view name, const char *value) const {
    return attr(name, std::string_view(value));
  }
  mlir::NamedAttribute attr(std::string_view name, const std::vector<int64_t> &values) const;
  mlir::NamedAttribute attr(std::string_view name, const std::vector<double> &values) const;
  /// The node's own attributes of these names that it has, in the words of OpRow::attributes (types are
  /// optional).
  Attributes pick(std::string_view names);

  // --- results ---
  void out(size_t i, mlir::Value value) {
    if (i < results.size())
      results[i] = value;
  }
  void outs(const Values &values) {
    for (size_t i = 0; i < values.size(); ++i)
      out(i, values[i]);
  }
  const Values &outputs() const { return results; }

  // --- refusal ---
  void unsupported(std::string reason) { refuse(std::move(reason), false); }
  /// The node breaks the operator's own rules.
  void invalid(std::string reason) { refuse(std::move(reason), true); }
  bool failed() const { return !why.empty(); }
  /// Something inside the node could not be built and has been reported; the node itself is fine.
  void poison() { poisoned = true; }
  bool isPoisoned() const { return poisoned; }
  bool isInvalid() const { return broken; }
  const std::string &reason() const { return why; }

private:
  void pickTensor(std::string_view name, const ::onnx::TensorProto &tensor, Attributes &picked);
  mlir::Value bytes(DType type, const std::vector<int64_t> &dims, std::span<const std::byte> data);
  void refuse(std::string reason, bool isInvalid) {
    if (failed())
      return;
    why = std::move(reason);
    broken = isInvalid;
  }

  GraphImporter &graph;
  const ::onnx::NodeProto &node;
  const OpRow &tableRow;
  int64_t opset;
  const AttributeScope &scope;
  mlir::Location location;
  Values operands, results;
  std::string why;
  bool broken = false, poisoned = false;
};

/// As MLIR writes it.
std::string typeText(mlir::Type type);

/// Checks a node's operands and attributes against its row, then builds it.
void buildNode(Node &node);

} // namespace dspark::onnx
