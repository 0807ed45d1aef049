// Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2, section 2.1) on the cached row itself: what
// makes keys of the latent row is applied to the queries, and what makes values of it to the result.
//
//   q . k = q_plain . (U_k c) + q_rotated . r = (U_k^T q_plain) . c + q_rotated . r
//   sum_j p_j U_v c_j = U_v sum_j p_j c_j
//
// So attention has one key head of rank + rotated elements, whose first `rank` are its values, and nothing
// grows with the number of heads but the queries.
#pragma once
#include "frontends/checkpoint/DecoderConfig.h"
#include "frontends/language/GraphBuilder.h"

namespace dspark::language {

class LatentBuilder {
public:
  LatentBuilder(const checkpoint::DecoderConfig &config, GraphBuilder &graph)
      : config(config), latent(config.latent), g(graph) {}

  using Rotate = llvm::function_ref<mlir::Value(mlir::Value rows, int64_t heads)>;
  /// Queries [rows, heads, rank + rotated] of layer `block`'s hidden rows x [1, rows, hidden]. `rotate` takes
  /// [1, rows, heads * rotated].
  mlir::Value queries(const std::string &block, mlir::Value x, Rotate rotate);
  /// What is cached: [rows, 1, rank + rotated].
  mlir::Value row(const std::string &block, mlir::Value x, Rotate rotate);
  /// Values [1, rows, heads * value] of attention's [rows, heads, rank].
  mlir::Value values(const std::string &block, mlir::Value attended);

private:
  std::vector<checkpoint::Matrix> keyFactors(const std::string &block),
      valueFactors(const std::string &block);
  std::vector<checkpoint::Matrix> headsOf(const std::string &block, int64_t first, int64_t count,
                                          bool isTransposed);

  const checkpoint::DecoderConfig &config;
  const checkpoint::LatentAttention &latent;
  GraphBuilder &g;
};

} // namespace dspark::language
