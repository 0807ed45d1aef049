#include "frontends/language/DraftBuilder.h"
#include "frontends/language/DraftGraph.h"
#include <cmath>

using namespace mlir;

namespace dspark::language {
namespace {

using checkpoint::DraftConfig;
using checkpoint::DraftWeights;
using checkpoint::MarkovHead;

bool hasHead(const DraftConfig &draft) { return draft.markov != MarkovHead::None || draft.hasConfidence; }

// Logits of the draft's tokens -> of the target's: -inf where the draft has none.
Value ofAllTokens(GraphBuilder &g, Value logits, const DraftWeights &weights) {
  const std::vector<int32_t> &logitOf = weights.logitOfToken();
  if (logitOf.empty())
    return logits;
  std::vector<int64_t> indices(logitOf.size());
  std::vector<float> mask(logitOf.size());
  for (size_t i = 0; i < logitOf.size(); ++i) {
    indices[i] = std::max(logitOf[i], 0);
    mask[i] = logitOf[i] < 0 ? -INFINITY : 0;
  }
  g.at("draft.tokens");
  Value gathered =
      g.op("gather", {logits, g.longs("draft.token_logits", indices)}, {g.attr("axis", int64_t(-1))});
  return g.binary("add", gathered, g.floats("draft.token_mask", mask, {1, int64_t(mask.size())}));
}

class BlockGraph : DraftGraph {
public:
  using DraftGraph::DraftGraph;

  void build() {
    Value slots = g.argument("context_slots", DType::I32, {"context"});
    Value contextPositions = g.argument("context_positions", DType::I32, {"context"});
    Value tokens = g.argument("tokens", DType::I32, {"rows"});
    Value positions = g.argument("positions", DType::I32, {"rows"});
    SmallVector<Value> writes = {g.argument("write_offsets", DType::I32, {"writes + 1"}),
                                 g.argument("write_lengths", DType::I32, {"writes"}),
                                 g.argument("write_table", DType::I32, {"writes", "table_pages"})};
    SmallVector<Value> blocks = {g.argument("block_offsets", DType::I32, {"blocks + 1"}),
                                 g.argument("block_lengths", DType::I32, {"blocks"}),
                                 g.argument("block_table", DType::I32, {"blocks", "table_pages"})};
    Value wanted = g.argument("logit_rows", DType::I32, {"wanted"});
    addCaches();
    Rotation own(g, config, positions, "rows");
    g.at("draft.positions");
    Value places = g.op("concat", {contextPositions, positions}, {g.attr("axis", int64_t(0))});
    Rotation all(g, config, g.reshape(places, {kAll}), kAll);
    // Made once, for all layers; their own input norms are for the block alone.
    Value context = g.norm(features(slots), "draft.hidden_norm", config.hidden, config.normEpsilon);
    Value x = embed(tokens, "rows");
    for (size_t i = 0; i < config.layers.size(); ++i)
      x = layer(i, x, context, all, own, writes, blocks);
    g.at("draft.output");
    Value hidden = g.norm(pick(x, wanted), "draft.output_norm", config.hidden, config.normEpsilon),
          y = logits(hidden);
    if (!hasHead(draft))
      y = ofAllTokens(g, y, weights);
    g.finish({{y, "logits"}, {g.reshape(hidden, {"wanted", text(config.hidden)}), "hidden"}});
  }

private:
  static constexpr const char *kAll = "context + rows";

  Value layer(size_t index, Value x, Value context, const Rotation &all, const Rotation &own,
              ValueRange writes, ValueRange blocks) {
    Value normed = g.norm(x, block(index) + "attn_norm", config.hidden, config.normEpsilon);
    g.at(block(index) + "context");
    Value both = g.op("concat", {context, normed}, {g.attr("axis", 1)});
    both = g.reshape(both, {"1", kAll, text(config.hidden)});
    Value q = queries(index, normed, config.hidden, own, "rows");
    Value k = keys(index, both, config.hidden, all, kAll), v = values(index, both, config.hidden, kAll);
    return feedForward(index, attend(index, x, q, k, v, writes, blocks, /*isCausal=*/false, "rows"));
  }
};

class EagleGraph : DraftGraph {
public:
  using DraftGraph::DraftGraph;

  void build() {
    Value slots = g.argument("context_slots", DType::I32, {"context"});
    Value drafted = g.argument("features", DType::F32, {"drafted", text(config.hidden)});
    Value tokens = g.argument("tokens", DType::I32, {kAll});
    Value positions = g.argument("positions", DType::I32, {kAll});
    SmallVector<Value> batch = {g.argument("query_offsets", DType::I32, {"sequences + 1"}),
                                g.argument("sequence_lengths", DType::I32, {"sequences"}),
                                g.argument("block_table", DType::I32, {"sequences", "table_pages"})};
    Value wanted = g.argument("logit_rows", DType::I32, {"wanted"});
    addCaches();
    Rotation rotation(g, config, positions, kAll);
    Value given = features(slots);
    g.at("draft.features");
    Value feature = g.op("concat", {given, g.reshape(drafted, {"1", "drafted", text(config.hidden)})},
                         {g.attr("axis", 1)});
    feature = g.reshape(feature, {"1", kAll, text(config.hidden)});
    Value token = g.norm(embed(tokens, kAll), block(0) + "attn_norm", config.hidden, config.normEpsilon);
    Value normed = g.norm(feature, block(0) + "hidden_norm", config.hidden, config.normEpsilon);
    g.at(block(0) + "pair");
    Value pair = g.op("concat", {token, normed}, {g.attr("axis", int64_t(-1))});
    const int64_t width = 2 * config.hidden;
    Value q = queries(0, pair, width, rotation, kAll), k = keys(0, pair, width, rotation, kAll);
    Value x = attend(0, feature, q, k, values(0, pair, width, kAll), batch, batch, /*isCausal=*/true, kAll);
    g.at("draft.output");
    Value hidden = pick(feedForward(0, x), wanted); // what the next pair takes is not normed
    Value y = logits(g.norm(hidden, "draft.output_norm", config.hidden, config.normEpsilon));
    g.finish({{ofAllTokens(g, y, weights), "logits"},
              {g.reshape(hidden, {"wanted", text(config.hidden)}), "hidden"}});
  }

private:
  static constexpr const char *kAll = "context + drafted";
};

// The sequential head and the confidence.
class HeadGraph {
public:
  HeadGraph(GraphBuilder &graph, const DraftConfig &config, const DraftWeights &weights)
      : g(graph), draft(config), weights(weights) {}

  void build() {
    const int64_t hidden = draft.model.decoder.hidden, vocabulary = draft.draftVocabulary;
    Value tokens = g.argument("tokens", DType::I32, {"rows"});
    h = g.reshape(g.argument("hidden", DType::F32, {"rows", text(hidden)}), {"1", "rows", text(hidden)});
    Value base = g.argument("logits", DType::F32, {"rows", text(vocabulary)});
    Value state = draft.markov == MarkovHead::Rnn
                      ? g.argument("state", DType::F32, {"rows", text(draft.markovRank)})
                      : Value();
    if (draft.markov != MarkovHead::None)
      e = g.embed(g.reshape(tokens, {"1", "rows"}), "draft.markov_w1", draft.model.decoder.vocabulary,
                  draft.markovRank);
    SmallVector<GraphBuilder::Result> results = {{ofAllTokens(g, logits(base, state), weights), "logits"}};
    if (draft.hasConfidence)
      results.push_back({confidence(), "confidence"});
    if (state)
      results.push_back({g.reshape(nextState, {"rows", text(draft.markovRank)}), "state"});
    g.finish(results);
  }

private:
  static std::string text(int64_t number) { return std::to_string(number); }
  Value joined(ValueRange parts) { return g.op("concat", parts, {g.attr("axis", int64_t(-1))}); }

  // base + W2 z, z as the kind of head makes it of the token before and the row.
  Value logits(Value base, Value state) {
    if (draft.markov == MarkovHead::None)
      return base;
    const int64_t rank = draft.markovRank, hidden = draft.model.decoder.hidden;
    Value z = e;
    if (draft.markov == MarkovHead::Gated) {
      Value gate = g.matmul(joined({h, e}), "draft.markov_gate", rank, hidden + rank);
      z = g.binary("mul", g.unary("sigmoid", gate), e);
    } else if (draft.markov == MarkovHead::Rnn) {
      z = recur(g.reshape(state, {"1", "rows", text(rank)}));
    }
    Value above = g.reshape(base, {"1", "rows", text(draft.draftVocabulary)});
    Value y = g.matmul(z, "draft.markov_w2", draft.draftVocabulary, rank, above);
    return g.reshape(y, {"rows", text(draft.draftVocabulary)});
  }

  // (gate, candidate, output) = J [s; e; h]; s' = gate s + (1 - gate) tanh(candidate).
  Value recur(Value s) {
    const int64_t rank = draft.markovRank;
    Value joint =
        g.matmul(joined({s, e, h}), "draft.markov_joint", 3 * rank, 2 * rank + draft.model.decoder.hidden);
    SmallVector<Value> parts =
        g.ops("split", {joint}, {g.attr("axis", int64_t(-1)), g.attr("num_outputs", int64_t(3))}, 3);
    Value gate = g.unary("sigmoid", parts[0]), candidate = g.unary("tanh", parts[1]);
    nextState = g.binary("add", candidate, g.binary("mul", gate, g.binary("sub", s, candidate)));
    return g.unary("tanh", parts[2]);
  }

  Value confidence() {
    const int64_t hidden = draft.model.decoder.hidden;
    Value seen = draft.confidenceSeesMarkov ? joined({h, e}) : h;
    Value y =
        g.matmul(seen, "draft.confidence", 1, hidden + (draft.confidenceSeesMarkov ? draft.markovRank : 0));
    return g.reshape(y, {"rows"});
  }

  GraphBuilder &g;
  const DraftConfig &draft;
  const DraftWeights &weights;
  Value h, e, nextState; // the row; W1 of the token before
};

} // namespace

Status buildDraft(const DraftConfig &config, const DraftWeights &weights, const DecoderOptions &options,
                  ModuleOp module, WeightStore &store) {
  const char *arithmetic = options.int8Arithmetic ? "int8" : "f32";
  GraphBuilder graph(module, "draft", weights, store, arithmetic);
  if (config.kind == DraftConfig::Kind::Eagle3)
    EagleGraph(graph, config, weights, options).build();
  else
    BlockGraph(graph, config, weights, options).build();
  DSPARK_RETURN_IF_ERROR(Status(graph.status()));
  if (!hasHead(config))
    return Status::ok();
  GraphBuilder head(module, "draft_head", weights, store, arithmetic);
  HeadGraph(head, config, weights).build();
  return head.status();
}

} // namespace dspark::language
