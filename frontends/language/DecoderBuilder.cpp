#include "frontends/language/DecoderBuilder.h"
#include "frontends/language/LatentAttention.h"
#include "frontends/language/MixtureBuilder.h"
#include "frontends/language/PagedStep.h"
#include "frontends/language/Rotation.h"
#include <numeric>

using namespace mlir;

namespace dspark::language {
namespace {

using checkpoint::DecoderConfig;
using checkpoint::DecoderLayer;
using checkpoint::Matrix;

class Decoder {
public:
  /// Of these layers, with hidden states of `taps`.
  Decoder(const DecoderConfig &config, const DecoderOptions &options, ArrayRef<int64_t> layers,
          ArrayRef<int64_t> taps, GraphBuilder &graph)
      : config(config), options(options), layers(layers), tapped(taps), g(graph),
        paged(graph, options.cacheType) {}

  void build() {
    tokens = g.argument("tokens", DType::I32, {"rows"});
    positions = g.argument("positions", DType::I32, {"rows"});
    paged.addBatch();
    Value wanted = g.argument("logit_rows", DType::I32, {"wanted"});
    caches.resize(config.layers.size());
    for (int64_t i : layers)
      caches[size_t(i)] = addCaches(i);
    Value hiddenStates = tapped.empty() ? Value() : tapCache();
    rotation.emplace(g, config, positions, "rows");
    Value x = g.embed(g.reshape(tokens, {"1", "rows"}), "token_embd", config.vocabulary, config.hidden);
    x = g.scale(x, config.embeddingScale);
    tap(-1, x);
    for (int64_t i : layers) {
      x = layer(size_t(i), x);
      tap(i, x);
    }
    std::vector<GraphBuilder::Result> results = {{logits(x, wanted), "logits"}};
    if (hiddenStates) // nothing of the function reads it, so it is a result
      results.push_back({written(hiddenStates), "hidden_states"});
    g.finish(results);
  }

private:
  struct LayerCaches {
    PagedRows key, value; // latent attention has only one
  };

  static std::string text(int64_t number) { return std::to_string(number); }

  LayerCaches addCaches(int64_t layer) {
    if (config.latent.rank > 0)
      return {paged.addCache("key", layer, 1, config.latent.rowSize()), {}};
    PagedRows key = paged.addCache("key", layer, config.kvHeads, config.headSize);
    return {key, paged.addCache("value", layer, config.kvHeads, config.headSize)};
  }

  Value tapCache() {
    return g.argument("hidden_states", tapType(options),
                      {"pages", "1", "page_size", text(int64_t(tapped.size()) * config.hidden)},
                      /*isState=*/true);
  }

  void tap(int64_t layer, Value x) {
    if (llvm::is_contained(tapped, layer))
      taps.push_back(x);
  }

  Value written(Value cache) {
    g.at("hidden_states");
    Value rows = taps.size() == 1 ? taps[0] : g.op("concat", taps, {g.attr("axis", int64_t(-1))});
    rows = g.reshape(rows, {"rows", "1", text(int64_t(tapped.size()) * config.hidden)});
    return paged.write({cache, {}}, rows).rows;
  }

  // Norm of each head's elements, where the model has one.
  Value normHeads(Value x, const std::string &weight, int64_t heads) {
    if (!g.has(weight))
      return x;
    Value split = g.reshape(x, {"1", "rows", text(heads), text(config.headSize)});
    Value normed = g.norm(split, weight, config.headSize, config.normEpsilon);
    return g.reshape(normed, {"1", "rows", text(heads * config.headSize)});
  }

  Value heads(Value x, int64_t count) { return g.reshape(x, {"rows", text(count), text(config.headSize)}); }

  Value attention(size_t index, Value x) {
    const DecoderLayer &settings = config.layers[index];
    std::string block = "blk." + std::to_string(index) + ".";
    int64_t queries = config.heads * config.headSize, width = config.kvHeads * config.headSize;
    Value q, k, v;
    if (g.has(block + "attn_qkv")) {
      if (std::optional<Matrix> all = g.matrixOf(block + "attn_qkv", queries + 2 * width, config.hidden)) {
        q = g.matmul(x, block + "attn_q", all->slice(0, queries));
        k = g.matmul(x, block + "attn_k", all->slice(queries, width));
        v = g.matmul(x, block + "attn_v", all->slice(queries + width, width));
      }
    } else {
      q = g.matmul(x, block + "attn_q", queries, config.hidden);
      k = g.matmul(x, block + "attn_k", width, config.hidden);
      v = g.matmul(x, block + "attn_v", width, config.hidden);
    }
    q = normHeads(q, block + "attn_q_norm", config.heads);
    k = normHeads(k, block + "attn_k_norm", config.kvHeads);
    g.at(block + "attention");
    q = rotation->rotate(q, config.heads, settings.rope);
    k = rotation->rotate(k, config.kvHeads, settings.rope);
    PagedRows keys = paged.write(caches[index].key, heads(k, config.kvHeads));
    PagedRows values = paged.write(caches[index].value, heads(v, config.kvHeads));
    Value y = paged.attend(heads(q, config.heads), keys, values, form(settings));
    return g.reshape(y, {"1", "rows", text(queries)});
  }

  Value latentAttention(size_t index, Value x) {
    const DecoderLayer &settings = config.layers[index];
    std::string block = "blk." + std::to_string(index) + ".";
    LatentBuilder latent(config, g);
    auto turn = [&](Value rows, int64_t heads) { return rotation->rotate(rows, heads, settings.rope); };
    Value q = latent.queries(block, x, turn), row = latent.row(block, x, turn);
    g.at(block + "attention");
    PagedRows rows = paged.write(caches[index].key, row);
    Value y = paged.attend(q, rows, rows, form(settings), {g.attr("value_width", config.latent.rank)});
    return latent.values(block, y);
  }

  AttentionForm form(const DecoderLayer &settings) const {
    return {config.attentionScale, config.attentionSoftcap, settings.window};
  }

  Value feedForward(const std::string &block, Value x) {
    std::string up = block + "ffn_up", name = block + "ffn";
    if (g.has(block + "ffn_gate")) {
      std::optional<Matrix> a = g.matrixOf(block + "ffn_gate", config.feedForward, config.hidden),
                            b = g.matrixOf(up, config.feedForward, config.hidden);
      return a && b ? g.gated(x, name, *a, *b, config.activation) : Value();
    }
    std::optional<Matrix> both = g.matrixOf(up, 2 * config.feedForward, config.hidden); // gate above up
    return both ? g.gated(x, name, both->slice(0, config.feedForward),
                          both->slice(config.feedForward, config.feedForward), config.activation)
                : Value();
  }

  // x + norm(W y): the sum is the product's own residual where no norm lies between.
  Value project(Value x, Value y, const std::string &weight, const std::string &norm, int64_t k) {
    if (!g.has(norm))
      return g.matmul(y, weight, config.hidden, k, x);
    Value projected = g.norm(g.matmul(y, weight, config.hidden, k), norm, config.hidden, config.normEpsilon);
    return g.binary("add", x, projected);
  }

  Value layer(size_t index, Value x) {
    std::string block = "blk." + std::to_string(index) + ".";
    Value normed = g.norm(x, block + "attn_norm", config.hidden, config.normEpsilon);
    bool isLatent = config.latent.rank > 0;
    x = project(x, isLatent ? latentAttention(index, normed) : attention(index, normed),
                block + "attn_output", block + "post_attention_norm",
                config.heads * (isLatent ? config.latent.value : config.headSize));
    normed = g.norm(x, block + "ffn_norm", config.hidden, config.normEpsilon);
    if (g.has(block + "ffn_gate_inp"))
      return buildMixture(g, config, block, normed, x);
    return project(x, feedForward(block, normed), block + "ffn_down", block + "post_ffw_norm",
                   config.feedForward);
  }

  Value logits(Value x, Value wanted) {
    g.at("output");
    Value rows = g.op("gather", {x, wanted}, {g.attr("axis", 1)});
    rows = g.norm(rows, "output_norm", config.hidden, config.normEpsilon);
    Value y = g.matmul(rows, g.has("output") ? "output" : "token_embd", config.vocabulary, config.hidden);
    if (config.logitSoftcap != 0)
      y = g.scale(g.unary("tanh", g.scale(y, 1 / config.logitSoftcap)), config.logitSoftcap);
    return g.reshape(y, {"wanted", text(config.vocabulary)});
  }

  const DecoderConfig &config;
  const DecoderOptions &options;
  ArrayRef<int64_t> layers, tapped;
  GraphBuilder &g;
  PagedStep paged;
  Value tokens, positions;
  SmallVector<Value> taps;         // in ascending order of layers
  std::vector<LayerCaches> caches; // of all layers; null where one is left out
  std::optional<Rotation> rotation;
};

// Ascending, from `least` on, and layers of the model.
Status checkLayers(const DecoderConfig &config, ArrayRef<int64_t> layers, int64_t least) {
  for (int64_t layer : layers) {
    if (int64_t most = int64_t(config.layers.size()) - 1; layer < least || layer > most)
      return invalidArgument("layer " + std::to_string(layer) + " is asked for, expected " +
                             std::to_string(least) + " to " + std::to_string(most));
    least = layer + 1;
  }
  return Status::ok();
}

} // namespace

Status buildDecoder(const DecoderConfig &config, const checkpoint::DecoderWeights &weights,
                    const DecoderOptions &options, ModuleOp module, WeightStore &store) {
  DSPARK_RETURN_IF_ERROR(checkLayers(config, options.taps, /*least=*/-1));
  std::vector<int64_t> all(config.layers.size());
  std::iota(all.begin(), all.end(), 0);
  GraphBuilder graph(module, "main", weights, store, options.int8Arithmetic ? "int8" : "f32");
  Decoder(config, options, all, options.taps, graph).build();
  return graph.status();
}

Status buildSelfDraft(const DecoderConfig &config, const checkpoint::DecoderWeights &weights,
                      const DecoderOptions &options, StringRef function, ArrayRef<int64_t> layers,
                      ModuleOp module, WeightStore &store) {
  DSPARK_RETURN_IF_ERROR(checkLayers(config, layers, /*least=*/0));
  GraphBuilder graph(module, function, weights, store, options.int8Arithmetic ? "int8" : "f32");
  Decoder(config, options, layers, {}, graph).build();
  return graph.status();
}

} // namespace dspark::language
