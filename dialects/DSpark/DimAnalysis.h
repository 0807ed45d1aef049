// What is known of every value of a function: dims as expressions over symbols, and the contents of small
// integer tensors. Symbols are bound by the function's inputs (dspark.dims) or stand for dims that only a run
// can tell.
#pragma once
#include "dialects/DSpark/Infer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <set>
#include <unordered_map>

namespace dspark::ir {

class DimAnalysis {
public:
  DimAnalysis() = default;
  DimAnalysis(const DimAnalysis &) = delete;

  DimTable &table() { return dims; }

  /// Forgets all values, then visits a function from its arguments to its end, nested blocks included.
  void run(mlir::func::FuncOp func);
  /// Gives a function argument its dims by its dspark.dims attribute.
  void bindArgument(mlir::func::FuncOp func, unsigned index);
  /// Makes `name` a symbol that inputs bind.
  Dim inputSymbol(llvm::StringRef name);
  /// Whether an expression uses only symbols that inputs bind (so that a plan can evaluate it before it
  /// runs).
  bool isInputExpression(Dim dim) const;

  /// The facts of a value; from its type and constant alone if it was not visited. Valid until run() or
  /// setInfo() of the same value.
  const TensorInfo &info(mlir::Value value);
  void setInfo(mlir::Value value, TensorInfo info);
  /// Replaces unknown dims by fresh symbols, so that later uses can be compared.
  void nameUnknownDims(TensorInfo &info);

  /// Must be called before an operation is erased: the facts of its results go, since their addresses may come back.
  void forget(mlir::Operation *op);

  /// Computes the facts of an operation's results, nested blocks included.
  void visit(mlir::Operation *op);

private:
  void visitBlock(mlir::Block &block);
  void visitIf(IfOp op);
  void visitLoop(LoopOp op);
  void visitDims(DimsOp op);
  void visitFused(FusedOp op);
  void visitCatalogue(mlir::Operation *op);
  void setFromType(mlir::Value value);

  DimTable dims;
  std::set<std::string> bound;
  /// By opaque pointer. Not a DenseMap: info() hands out references, which must outlive later insertions.
  std::unordered_map<void *, TensorInfo> facts;
};

} // namespace dspark::ir
