// Rotary embedding of a batch's rows, as a model's configuration has it.
#pragma once
#include "frontends/checkpoint/DecoderConfig.h"
#include "frontends/language/GraphBuilder.h"

namespace dspark::language {

class Rotation {
public:
  /// Makes cosine and sine [1, rows, pairs] for every rope. `positions` i32[rows]; `rows` is that dim as
  /// text.
  Rotation(GraphBuilder &graph, const checkpoint::DecoderConfig &config, mlir::Value positions,
           const std::string &rows);

  /// x [1, rows, heads * headSize] with every head turned.
  mlir::Value rotate(mlir::Value x, int64_t heads, int rope) const;

private:
  struct Angle {
    mlir::Value cos, sin;
  };
  GraphBuilder &g;
  const checkpoint::DecoderConfig &config;
  std::vector<Angle> angles;
};

} // namespace dspark::language
