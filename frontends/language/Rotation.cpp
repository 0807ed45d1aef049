#include "frontends/language/Rotation.h"

using namespace mlir;

namespace dspark::language {

// Angles are rounded to f32 as Hugging Face's are.
Rotation::Rotation(GraphBuilder &graph, const checkpoint::DecoderConfig &config, Value positions,
                   const std::string &rows)
    : g(graph), config(config) {
  g.at("rope");
  Value places = g.reshape(g.cast(positions, DType::F32), {"1", rows, "1"});
  for (size_t i = 0; i < config.ropes.size(); ++i) {
    const checkpoint::RopeTable &rope = config.ropes[i];
    int64_t pairs = int64_t(rope.inverseFrequencies.size());
    Value angle =
        g.binary("mul", places,
                 g.floats("rope.frequencies." + std::to_string(i), rope.inverseFrequencies, {1, 1, pairs}));
    angles.push_back(
        {g.scale(g.unary("cos", angle), rope.magnitude), g.scale(g.unary("sin", angle), rope.magnitude)});
  }
}

Value Rotation::rotate(Value x, int64_t heads, int rope) const {
  int64_t rotated = 2 * int64_t(config.ropes[size_t(rope)].inverseFrequencies.size());
  return g.op("rotary_embedding", {x, angles[size_t(rope)].cos, angles[size_t(rope)].sin},
              {g.attr("num_heads", heads), g.attr("interleaved", int64_t(config.interleavedRope)),
               g.attr("rotary_embedding_dim", rotated)});
}

} // namespace dspark::language
