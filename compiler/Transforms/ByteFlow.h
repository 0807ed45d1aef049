// Which contractions of a function may run on bytes, and how bytes get from one to the next without becoming
// floats: through relu and other functions of one tensor, sums and products of two, averages, concatenations
// and whatever only moves elements.
#pragma once
#include "dialects/DSpark/DSpark.h"
#include "dialects/DSpark/WeightStore.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <memory>
#include <optional>

namespace dspark {

class ByteFlow {
public:
  /// Contractions in the function's own block: matmul with a constant right side, conv with constant weights,
  /// of f32, each named by a node of its own.
  ByteFlow(mlir::func::FuncOp func, const std::shared_ptr<WeightStore> &weights);

  struct Contraction {
    mlir::Operation *op;
    std::string node;
    size_t input; // number of operand 0
  };
  llvm::ArrayRef<Contraction> contractions() const { return found; }
  /// By number: what contractions read, and what bytes may flow through on the way there.
  llvm::ArrayRef<mlir::Value> values() const { return numbered; }
  std::optional<size_t> numberOf(mlir::Value value) const;
  std::optional<size_t> contractionOf(mlir::Value result) const;

  /// The operands whose bytes `op` can compute on to give bytes; none for contractions and all else.
  static llvm::SmallVector<mlir::Value> bytesTaken(mlir::Operation *op);
  /// Whether op's result is a function of one number: a table of bytes.
  static bool isFunction(mlir::Operation *op);

  /// Whether the maker of `value` can give bytes where the contractions in `chosen` do and the values in
  /// `points` are bytes already.
  bool isMadeOfBytes(mlir::Value value, const llvm::BitVector &chosen,
                     const llvm::SetVector<mlir::Value> &points) const;
  /// Whether something reads a numbered value that cannot compute on its bytes.
  bool hasFloatReaders(mlir::Value value) const;

private:
  bool isContraction(mlir::Operation *op, const std::shared_ptr<WeightStore> &weights) const;
  void number(mlir::Value value);

  llvm::SmallVector<Contraction> found;
  llvm::DenseMap<mlir::Operation *, size_t> indexOf;
  llvm::SmallVector<mlir::Value> numbered;
  llvm::DenseMap<mlir::Value, size_t> numbers;
};

} // namespace dspark
