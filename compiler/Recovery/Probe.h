// One value of a function for numbers in place of its symbols and for given inputs: what a subgraph that no
// pattern could list means. Kernels of the baseline compute it, operation by operation.
#pragma once
#include "compiler/Support/Evaluate.h"
#include "dialects/DSpark/DimAnalysis.h"
#include "dialects/DSpark/WeightStore.h"

namespace dspark::recovery {

/// The number an expression gives; nullopt if a symbol is missing or the arithmetic fails.
std::optional<int64_t> numberOf(Dim dim, const std::map<std::string, int64_t> &symbols);

class Probe {
public:
  /// All are borrowed.
  Probe(ir::DimAnalysis &analysis, const WeightStore &weights, std::map<std::string, int64_t> symbols)
      : analysis(analysis), weights(weights), symbols(std::move(symbols)) {}

  void setInput(mlir::Value argument, HostBytes value) {
    known[argument.getAsOpaquePointer()] = std::move(value);
  }
  void setInput(mlir::Value argument, std::vector<int64_t> dims, const std::vector<int64_t> &values);

  /// Null if it depends on an input that was not set, on a symbol without a number, or on what only a run
  /// tells.
  const HostBytes *value(mlir::Value value);
  /// Its elements, if they are integers or booleans.
  std::optional<std::vector<int64_t>> integers(mlir::Value value);

private:
  bool compute(mlir::Operation *op);
  bool computeCatalogue(mlir::Operation *op);

  ir::DimAnalysis &analysis;
  const WeightStore &weights;
  std::map<std::string, int64_t> symbols;
  std::map<void *, HostBytes> known; // by opaque pointer
  int depth = 0;
};

} // namespace dspark::recovery
