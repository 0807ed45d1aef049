// Whether an operation computes each token by itself, whatever tokens stand beside it: what may run on the
// rows of a ragged batch as it stands.
#pragma once
#include "dialects/DSpark/DimAnalysis.h"

namespace dspark::recovery {

/// The symbols of a model's inputs whose dims count tokens.
struct TokenSymbols {
  std::string batch, sequence;
};

/// Whether the expression has one of these symbols.
bool countsTokens(Dim dim, const TokenSymbols &symbols);

/// Why it may mix tokens, as a sentence's end ("reduces over them"); "" if it does not.
std::string mixingOf(mlir::Operation *op, ir::DimAnalysis &analysis, const TokenSymbols &symbols);

} // namespace dspark::recovery
