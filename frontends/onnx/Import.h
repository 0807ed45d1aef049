// ONNX file -> module of the `dspark` dialect, and the whereabouts of its weights.
//
// The module holds one function `main` whose arguments and results are the graph's, with their names
// (dspark.name) and, for arguments, their dims (dspark.dims). Every operation's location is the name of its
// node.
#pragma once
#include "dialects/DSpark/WeightStore.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <map>
#include <string>
#include <vector>

namespace dspark::onnx {

struct ImportOptions {
  /// Symbols to fix, by the name the model gives them (`batch`), the name they have in the module, or, for
  /// dims without a name, `<input>_<axis>`.
  std::map<std::string, int64_t> dims;
};

/// Something that keeps the model from being compiled.
struct ImportIssue {
  enum class Kind {
    Unsupported, // the model is fine, we are not
    Invalid,     // the file or an option is wrong
  };
  Kind kind = Kind::Unsupported;
  std::string node;  // name, or "Op_index"; function calls and subgraphs are a path. Empty: the whole file
  std::string op;    // with its domain, "com.microsoft.Foo"
  int64_t opset = 0; // of that domain; 0 with no node
  std::vector<std::string> operands; // types, "f32[batch, 3]"
  std::string reason;

  /// One line.
  std::string str() const;
};

struct ImportResult {
  mlir::OwningOpRef<mlir::ModuleOp> module; // null if there are issues
  WeightStore weights;
  std::vector<ImportIssue> issues; // all there are in the whole model, in its order

  bool isOk() const { return issues.empty(); }
  /// Whether any issue says that the file itself is wrong (exit code 1) rather than not supported (2).
  bool isInvalid() const;
  /// All issues, one a line, after a line that names the file and counts them.
  std::string report(const std::string &path) const;
};

/// Loads the dialects it needs into `context`. Never fails otherwise than by `issues`.
ImportResult importOnnx(const std::string &path, mlir::MLIRContext &context,
                        const ImportOptions &options = {});

} // namespace dspark::onnx
