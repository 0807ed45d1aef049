// ONNX node names, out of MLIR locations.
#pragma once
#include "mlir/IR/Location.h"
#include <string>

namespace dspark {

/// The node name a location carries; "a, b" for fused ones (each name once, at most eight, then "..."), "" if
/// none.
std::string locationNames(mlir::Location loc);
/// The first of them: of fused operations, the node that the others were fused into.
std::string firstLocationName(mlir::Location loc);

} // namespace dspark
