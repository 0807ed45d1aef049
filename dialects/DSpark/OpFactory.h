// Makes catalogue operations by name, with inferred result types: what frontends and passes build graphs
// with.
#pragma once
#include "dialects/DSpark/DimAnalysis.h"
#include "mlir/IR/Builders.h"

namespace dspark::ir {

class OpFactory {
public:
  /// Both are borrowed. The builder's insertion point is where operations go.
  OpFactory(mlir::OpBuilder &builder, DimAnalysis &analysis) : builder(builder), dims(analysis) {}

  /// Makes `dspark.<name>`, or `dspark.kernel "name"` where no typed operation of that name exists. Absent
  /// operands in the middle are none() values; trailing ones may be left out. Fails, with a sentence in
  /// error(), if the catalogue lacks the name or the operands do not fit. Result types are refined by what
  /// the shape function knows.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> make(mlir::Location loc, llvm::StringRef name,
                                                       mlir::ValueRange operands,
                                                       llvm::ArrayRef<mlir::NamedAttribute> attributes = {},
                                                       unsigned results = 1);
  /// make() for the usual single result; null on failure.
  mlir::Value make1(mlir::Location loc, llvm::StringRef name, mlir::ValueRange operands,
                    llvm::ArrayRef<mlir::NamedAttribute> attributes = {});

  /// A constant of at most kMaxConstantBytes.
  mlir::Value constant(mlir::Location loc, mlir::DenseElementsAttr value);
  /// 1-D i64.
  mlir::Value ints(mlir::Location loc, llvm::ArrayRef<int64_t> values);
  /// 0-D f32 / i64.
  mlir::Value scalar(mlir::Location loc, float value);
  mlir::Value scalar(mlir::Location loc, int64_t value);
  /// A constant from row-major bytes in the model's encoding (packed sub-byte types; bools one byte each).
  mlir::FailureOr<mlir::Value> constant(mlir::Location loc, DType type, llvm::ArrayRef<int64_t> shape,
                                        llvm::ArrayRef<std::byte> bytes);
  /// A reference to the weight store's `name`, of static type.
  mlir::Value weight(mlir::Location loc, llvm::StringRef name, DType type, llvm::ArrayRef<int64_t> shape,
                     llvm::StringRef layout = "");
  mlir::Value none(mlir::Location loc);

  mlir::NamedAttribute attr(llvm::StringRef name, int64_t value);
  mlir::NamedAttribute attr(llvm::StringRef name, double value);
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::StringRef value);
  mlir::NamedAttribute attr(llvm::StringRef name, const char *value) {
    return attr(name, llvm::StringRef(value));
  }
  mlir::NamedAttribute attr(llvm::StringRef name, int value) { return attr(name, int64_t(value)); }
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::ArrayRef<int64_t> value);
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::ArrayRef<double> value);

  const std::string &error() const { return lastError; }
  mlir::OpBuilder &opBuilder() { return builder; }
  DimAnalysis &analysis() { return dims; }

private:
  mlir::OpBuilder &builder;
  DimAnalysis &dims;
  std::string lastError;
};

} // namespace dspark::ir
