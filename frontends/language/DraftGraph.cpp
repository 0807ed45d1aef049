#include "frontends/language/DraftGraph.h"

using namespace mlir;

namespace dspark::language {

using checkpoint::Matrix;

void DraftGraph::addCaches() {
  int64_t width = int64_t(draft.taps.size()) * config.hidden;
  hiddenStates =
      g.argument("hidden_states", tapType(options), {"target_pages", "1", "target_page_size", text(width)});
  DType type = options.cacheType == DType::I8 ? DType::F16 : options.cacheType; // no scales: it is small
  for (size_t i = 0; i < config.layers.size(); ++i)
    for (const char *kind : {"key_cache.", "value_cache."})
      caches.push_back(g.argument(kind + std::to_string(i), type,
                                  {"pages", text(config.kvHeads), "page_size", text(config.headSize)},
                                  /*isState=*/true));
}

Value DraftGraph::features(Value slots) {
  g.at("draft.fc");
  int64_t width = int64_t(draft.taps.size()) * config.hidden;
  Value rows =
      g.op("gather", {g.reshape(hiddenStates, {"target_pages * target_page_size", text(width)}), slots},
           {g.attr("axis", 0)});
  rows = g.reshape(g.cast(rows, DType::F32), {"1", "context", text(width)});
  return g.matmul(rows, "draft.fc", config.hidden, width);
}

Value DraftGraph::embed(Value tokens, const std::string &rows) {
  return g.embed(g.reshape(tokens, {"1", rows}),
                 g.has("draft.token_embd") ? "draft.token_embd" : "token_embd", config.vocabulary,
                 config.hidden);
}

Value DraftGraph::normHeads(Value x, const std::string &weight, const std::string &rows, int64_t heads) {
  if (!g.has(weight))
    return x;
  Value parts = g.reshape(x, {"1", rows, text(heads), text(config.headSize)});
  return g.reshape(g.norm(parts, weight, config.headSize, config.normEpsilon),
                   {"1", rows, text(heads * config.headSize)});
}

Value DraftGraph::queries(size_t layer, Value x, int64_t k, const Rotation &rotation,
                          const std::string &rows) {
  Value q = g.matmul(x, block(layer) + "attn_q", config.heads * config.headSize, k);
  q = normHeads(q, block(layer) + "attn_q_norm", rows, config.heads);
  return split(rotation.rotate(q, config.heads, config.layers[layer].rope), rows, config.heads);
}

Value DraftGraph::keys(size_t layer, Value x, int64_t k, const Rotation &rotation, const std::string &rows) {
  Value y = g.matmul(x, block(layer) + "attn_k", config.kvHeads * config.headSize, k);
  y = normHeads(y, block(layer) + "attn_k_norm", rows, config.kvHeads);
  return split(rotation.rotate(y, config.kvHeads, config.layers[layer].rope), rows, config.kvHeads);
}

Value DraftGraph::values(size_t layer, Value x, int64_t k, const std::string &rows) {
  return split(g.matmul(x, block(layer) + "attn_v", config.kvHeads * config.headSize, k), rows,
               config.kvHeads);
}

Value DraftGraph::attend(size_t layer, Value x, Value q, Value k, Value v, ValueRange writes,
                         ValueRange reads, bool isCausal, const std::string &rows) {
  g.at(block(layer) + "attention");
  Value keyCache = g.op("paged_cache_write", {caches[2 * layer], k, writes[0], writes[1], writes[2]});
  Value valueCache = g.op("paged_cache_write", {caches[2 * layer + 1], v, writes[0], writes[1], writes[2]});
  SmallVector<NamedAttribute> attributes = {g.attr("scale", config.attentionScale),
                                            g.attr("is_causal", int64_t(isCausal))};
  if (int64_t window = config.layers[layer].window; window > 0)
    attributes.push_back(g.attr("left_window_size", window - 1));
  Value y = g.op("paged_attention", {q, keyCache, valueCache, reads[0], reads[1], reads[2]}, attributes);
  int64_t width = config.heads * config.headSize;
  return g.matmul(g.reshape(y, {"1", rows, text(width)}), block(layer) + "attn_output", config.hidden, width,
                  x);
}

Value DraftGraph::feedForward(size_t layer, Value x) {
  Value normed = g.norm(x, block(layer) + "ffn_norm", config.hidden, config.normEpsilon);
  std::optional<Matrix> gate = g.matrixOf(block(layer) + "ffn_gate", config.feedForward, config.hidden),
                        up = g.matrixOf(block(layer) + "ffn_up", config.feedForward, config.hidden);
  if (!gate || !up)
    return {};
  Value y = g.gated(normed, block(layer) + "ffn", *gate, *up, config.activation);
  return g.matmul(y, block(layer) + "ffn_down", config.hidden, config.feedForward, x);
}

Value DraftGraph::logits(Value normed) {
  const char *head = g.has("draft.output")       ? "draft.output"
                     : g.has("draft.token_embd") ? "draft.token_embd"
                     : g.has("output")           ? "output"
                                                 : "token_embd";
  Value y = g.matmul(normed, head, draft.draftVocabulary, config.hidden);
  return g.reshape(y, {"wanted", text(draft.draftVocabulary)});
}

} // namespace dspark::language
