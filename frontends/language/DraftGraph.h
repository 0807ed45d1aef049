// What the functions of block and EAGLE-3 drafts have in common: hidden states from the target's cache,
// caches of their own, layers but for where queries, keys and values come from, and logits.
#pragma once
#include "frontends/language/DraftBuilder.h"
#include "frontends/language/Rotation.h"

namespace dspark::language {

class DraftGraph {
public:
  DraftGraph(GraphBuilder &graph, const checkpoint::DraftConfig &config,
             const checkpoint::DraftWeights &weights, const DecoderOptions &options)
      : g(graph), draft(config), config(config.model.decoder), weights(weights), options(options) {}

protected:
  using Value = mlir::Value;
  static std::string text(int64_t number) { return std::to_string(number); }
  static std::string block(size_t layer) { return "draft.blk." + std::to_string(layer) + "."; }

  /// The arguments hidden_states and, of every layer, key_cache and value_cache.
  void addCaches();
  /// fc of the hidden states at these slots, [1, context, hidden].
  Value features(Value slots);
  Value embed(Value tokens, const std::string &rows);
  /// x [1, rows, heads * headSize]: each head's elements, which the model may norm.
  Value normHeads(Value x, const std::string &weight, const std::string &rows, int64_t heads);
  /// Projects x [1, rows, k], norms heads and turns them.
  Value queries(size_t layer, Value x, int64_t k, const Rotation &rotation, const std::string &rows);
  Value keys(size_t layer, Value x, int64_t k, const Rotation &rotation, const std::string &rows);
  Value values(size_t layer, Value x, int64_t k, const std::string &rows);
  /// Attention of the queries to what is in the caches once the keys and values are written, through o_proj,
  /// on top of x. `writes` and `reads` are offsets, lengths and table.
  Value attend(size_t layer, Value x, Value q, Value k, Value v, mlir::ValueRange writes,
               mlir::ValueRange reads, bool isCausal, const std::string &rows);
  Value feedForward(size_t layer, Value x);
  Value pick(Value x, Value rows) { return g.op("gather", {x, rows}, {g.attr("axis", 1)}); }
  /// f32[wanted, vocabulary] of normed rows [1, wanted, hidden].
  Value logits(Value normed);

  GraphBuilder &g;
  const checkpoint::DraftConfig &draft;
  const checkpoint::DecoderConfig &config;
  const checkpoint::DraftWeights &weights;
  const DecoderOptions &options;

private:
  Value split(Value x, const std::string &rows, int64_t heads) {
    return g.reshape(x, {rows, text(heads), text(config.headSize)});
  }

  Value hiddenStates;
  std::vector<Value> caches; // keys and values of layer 0, of layer 1 ...
};

} // namespace dspark::language
