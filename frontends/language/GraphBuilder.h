// Operations of a language model's graph, one call each. The first error stays; after it calls make nothing
// and give null values, so that a caller may simply go on and ask at the end.
#pragma once
#include "dialects/DSpark/OpFactory.h"
#include "dialects/DSpark/WeightStore.h"
#include "frontends/checkpoint/DecoderWeights.h"
#include "mlir/IR/BuiltinOps.h"

namespace dspark::language {

class GraphBuilder {
public:
  /// Of a new function of `module`. `arithmetic` is matmul's attribute for weights of few bits.
  GraphBuilder(mlir::ModuleOp module, llvm::StringRef function, const checkpoint::DecoderWeights &weights,
               WeightStore &store, const char *arithmetic);

  const Status &status() const { return error; }
  struct Result {
    mlir::Value value;
    const char *name;
  };
  /// Ends the function with these results. Call it last.
  void finish(llvm::ArrayRef<Result> results);

  /// An argument; dims are numbers or expressions over symbols, which the first bare use binds.
  mlir::Value argument(const std::string &name, DType type, const std::vector<std::string> &dims,
                       bool isState = false);
  /// A constant, weight or absent operand of another graph.
  mlir::Value copy(mlir::Operation *op);
  /// Expressions over dims as integers of that type, [n] or a single one.
  mlir::Value dims(const std::vector<std::string> &expressions, mlir::Type type);
  /// What follows is called `name`, and "name/..." for parts of it.
  void at(const std::string &name) { place = name; }

  llvm::SmallVector<mlir::Value> ops(llvm::StringRef name, mlir::ValueRange operands,
                                     llvm::ArrayRef<mlir::NamedAttribute> attributes, unsigned results);
  mlir::Value op(llvm::StringRef name, mlir::ValueRange operands,
                 llvm::ArrayRef<mlir::NamedAttribute> attributes = {}) {
    return ops(name, operands, attributes, 1)[0];
  }
  mlir::Value unary(llvm::StringRef kind, mlir::Value x) { return op("unary", {x}, {attr("kind", kind)}); }
  mlir::Value binary(llvm::StringRef kind, mlir::Value a, mlir::Value b) {
    return op("binary", {a, b}, {attr("kind", kind)});
  }
  mlir::Value scale(mlir::Value x, double factor);
  mlir::Value plus(mlir::Value x, double term) { return binary("add", x, scalar(float(term))); }
  mlir::Value scalar(float value) { return factory.scalar(loc(), value); }
  /// In place of an operand that is left out.
  mlir::Value none() { return factory.none(loc()); }
  /// Elements [begin, end) along an axis.
  mlir::Value slice(mlir::Value x, int64_t axis, int64_t begin, int64_t end);
  mlir::Value concat(llvm::ArrayRef<mlir::Value> parts, int64_t axis) {
    return op("concat", parts, {attr("axis", axis)});
  }
  /// `dims` as for argument().
  mlir::Value reshape(mlir::Value x, const std::vector<std::string> &dims);
  mlir::Value cast(mlir::Value x, DType type) { return op("cast", {x}, {attr("to", int64_t(type))}); }
  /// A constant [dims] of f32.
  mlir::Value floats(const std::string &name, const std::vector<float> &values, std::vector<int64_t> dims);
  /// A weight of i64; the same name gives the same weight.
  mlir::Value longs(const std::string &name, const std::vector<int64_t> &values);

  /// rms(x) * w, over the last dim of n elements; x itself where the model has no such norm.
  mlir::Value norm(mlir::Value x, const std::string &weight, int64_t n, double epsilon);
  /// x + the vector; x itself where the model has none.
  mlir::Value plusBias(mlir::Value x, const std::string &name, int64_t n);
  /// act(x W^T + bias) + residual; the bias where the model has one.
  mlir::Value matmul(mlir::Value x, const std::string &weight, int64_t n, int64_t k,
                     mlir::Value residual = {});
  mlir::Value matmul(mlir::Value x, const std::string &name, const checkpoint::Matrix &matrix,
                     mlir::Value residual = {}, llvm::StringRef activation = "");
  /// act(x gate^T) * (x up^T), in one product where the layouts allow it.
  mlir::Value gated(mlir::Value x, const std::string &name, const checkpoint::Matrix &gate,
                    const checkpoint::Matrix &up, llvm::StringRef activation);
  /// Rows [rows, 1 or slots, k] of x as the experts see them that `ids` [rows, slots] names; of `gate` and
  /// `up` act(gate) * up, in one product; `gate` is empty where there is only one matrix.
  mlir::Value experts(mlir::Value x, mlir::Value ids, const std::string &name,
                      const std::vector<checkpoint::Matrix> &gate, const std::vector<checkpoint::Matrix> &up,
                      llvm::StringRef activation = "");
  /// x [rows, heads, k] -> [rows, heads, n]: head h by `matrices[h]`, [n][k].
  mlir::Value perHead(mlir::Value x, const std::string &name,
                      const std::vector<checkpoint::Matrix> &matrices);
  /// Where the layouts differ, an error.
  std::vector<checkpoint::Matrix> expertsOf(const std::string &weight, int64_t count, int64_t n, int64_t k);
  /// The `count` largest along the last dim, and where they are.
  std::pair<mlir::Value, mlir::Value> topK(mlir::Value x, int64_t count);
  /// Sums along one axis; it stays, with one element, if `keeps`.
  mlir::Value sum(mlir::Value x, int64_t axis, bool keeps);
  /// Rows `indices` of the matrix, as f32 [..., k].
  mlir::Value embed(mlir::Value indices, const std::string &weight, int64_t n, int64_t k);
  std::optional<checkpoint::Matrix> matrixOf(const std::string &weight, int64_t n, int64_t k);
  bool has(const std::string &weight) const { return weights.has(weight); }

  template <typename T> mlir::NamedAttribute attr(llvm::StringRef name, T value) {
    return factory.attr(name, value);
  }

private:
  mlir::Location loc() const;
  /// Dims as a 1-D tensor.
  mlir::Value shape(const std::vector<std::string> &texts);
  /// The packed matrices one behind the other as one weight [count, n, k].
  mlir::Value stacked(const std::string &name, const std::vector<checkpoint::Matrix> &matrices, bool isGated);
  void fail(Status status);
  /// The packed weight as a value; the same name gives the same weight.
  mlir::Value packed(const std::string &name, const checkpoint::Matrix &matrix, bool isGated);

  /// x's terms in the order in which the matrix has them.
  mlir::Value ordered(mlir::Value x, const std::string &name, const checkpoint::Matrix &matrix);

  const checkpoint::DecoderWeights &weights;
  WeightStore &store;
  const char *arithmetic;
  mlir::OpBuilder builder;
  ir::DimAnalysis analysis;
  ir::OpFactory factory;
  mlir::func::FuncOp main;
  std::string place;
  Status error;
};

} // namespace dspark::language
