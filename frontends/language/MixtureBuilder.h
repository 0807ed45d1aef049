// Mixtures of experts: the router's choice, the experts' products and their weighted sum.
#pragma once
#include "frontends/checkpoint/DecoderConfig.h"
#include "frontends/language/GraphBuilder.h"

namespace dspark::language {

/// residual + what the layer's experts make of the normed rows x, both [1, rows, hidden].
mlir::Value buildMixture(GraphBuilder &graph, const checkpoint::DecoderConfig &config,
                         const std::string &block, mlir::Value x, mlir::Value residual);

} // namespace dspark::language
