// Between MLIR's types and attributes and the catalogue's.
#pragma once
#include "dialects/DSpark/DSpark.h"
#include <deque>

namespace dspark::ir {

/// The element type with that code; null for Undefined.
mlir::Type mlirType(DType type, mlir::MLIRContext *context);
/// The code of an element type; Undefined if the catalogue has none.
DType dtypeOf(mlir::Type elementType);

/// What a type alone says: `?` dims are unknown. NoneType gives an absent operand.
TensorInfo infoFromType(mlir::Type type);
/// The tensor type: dims that are no number become `?`, and unknown rank `*`.
mlir::TensorType typeFromInfo(const TensorInfo &info, mlir::MLIRContext *context);
/// Adds the contents that a small constant has.
void addContents(TensorInfo &info, mlir::ElementsAttr value);
/// Row-major bytes of a constant in the plan file's encoding (bools one byte, sub-byte types packed as ONNX
/// does).
std::vector<std::byte> literalBytes(mlir::ElementsAttr value);
/// What type and defining operation say, without dim symbols.
TensorInfo infoOf(mlir::Value value);

/// The catalogue's view of MLIR attributes. Owns the storage; not copyable.
class AttrList {
public:
  AttrList() = default;
  AttrList(const AttrList &) = delete;
  void add(llvm::StringRef name, mlir::Attribute value);
  void add(mlir::DictionaryAttr attributes);
  Attrs view() const { return Attrs(list); }
  llvm::ArrayRef<Attr> entries() const { return list; }
  /// Whether entry i came from a list attribute (so that [1] is told from 1).
  bool isList(size_t i) const { return lists[i]; }

private:
  std::vector<Attr> list;
  std::vector<bool> lists;
  std::deque<std::string> names;
  std::deque<std::vector<int64_t>> ints;
  std::deque<std::vector<double>> floats;
};

/// The catalogue name and attributes of an operation that has ShapeInterface.
llvm::StringRef catalogueName(mlir::Operation *op);
void catalogueAttributes(mlir::Operation *op, AttrList &attributes);

/// Runs the shape function of `name`; ctx.in and ctx.attrs must be set. Error if the catalogue lacks the
/// entry.
InferStatus inferResults(llvm::StringRef name, size_t results, InferContext &ctx);

/// The type of all values of both types: dims that differ are unknown. Null if one is a tensor of other
/// elements, or a list of another kind.
mlir::Type joinTypes(mlir::Type a, mlir::Type b);
/// A sequence, optional or map.
bool isList(mlir::Type type);
/// How many lists are within each other; 0 for a tensor.
int listDepth(mlir::Type type);

// Shared bodies of the catalogue operations' methods.
llvm::LogicalResult verifyAgainstCatalogue(mlir::Operation *op);
double catalogueFlops(mlir::Operation *op, llvm::ArrayRef<TensorInfo> in, llvm::ArrayRef<TensorInfo> out);
bool isLegalPrecision(mlir::Operation *op, mlir::Type type);

} // namespace dspark::ir
