#include "frontends/language/DecoderBuilder.h"
#include "frontends/language/GraphBuilder.h"
#include "frontends/language/LatentAttention.h"
#include "frontends/language/MixtureBuilder.h"

using namespace mlir;

namespace dspark::language {
namespace {

using checkpoint::DecoderConfig;
using checkpoint::DecoderLayer;
using checkpoint::Matrix;

class Decoder {
public:
  Decoder(const DecoderConfig &config, const DecoderOptions &options, GraphBuilder &graph)
      : config(config), options(options), g(graph) {}

  void build() {
    tokens = g.argument("tokens", DType::I32, {"rows"});
    positions = g.argument("positions", DType::I32, {"rows"});
    // Sequences are bound by their lengths, of which there is one each.
    Value offsets = g.argument("query_offsets", DType::I32, {"sequences + 1"});
    Value lengths = g.argument("sequence_lengths", DType::I32, {"sequences"});
    Value table = g.argument("block_table", DType::I32, {"sequences", "table_pages"});
    batch = {offsets, lengths, table};
    Value wanted = g.argument("logit_rows", DType::I32, {"wanted"});
    for (size_t i = 0; i < config.layers.size(); ++i)
      addCaches("." + std::to_string(i));
    buildAngles();
    Value x = g.embed(g.reshape(tokens, {"1", "rows"}), "token_embd", config.vocabulary, config.hidden);
    x = g.scale(x, config.embeddingScale);
    for (size_t i = 0; i < config.layers.size(); ++i)
      x = layer(i, x);
    g.finish(logits(x, wanted), "logits");
  }

private:
  struct Cache {
    Value rows, scales; // scales of i8 rows only
  };
  struct LayerCaches {
    Cache key, value; // latent attention has only one
  };

  static std::string text(int64_t number) { return std::to_string(number); }

  void addCaches(const std::string &layer) {
    LayerCaches both;
    if (config.latent.rank > 0) {
      both.key = addCache("key", layer, 1, config.latent.rowSize());
    } else {
      both.key = addCache("key", layer, config.kvHeads, config.headSize);
      both.value = addCache("value", layer, config.kvHeads, config.headSize);
    }
    caches.push_back(both);
  }

  Cache addCache(const std::string &kind, const std::string &layer, int64_t heads, int64_t size) {
    std::vector<std::string> dims = {"pages", text(heads), "page_size"};
    Cache cache;
    if (options.cacheType == DType::I8)
      cache.scales = g.argument(kind + "_scales" + layer, DType::F32, dims, /*isState=*/true);
    dims.push_back(text(size));
    cache.rows = g.argument(kind + "_cache" + layer, options.cacheType, dims, /*isState=*/true);
    return cache;
  }

  // Cosine and sine [1, rows, rotated / 2] of every rope. Angles are rounded to f32 as Hugging Face's are.
  void buildAngles() {
    g.at("rope");
    Value places = g.reshape(g.cast(positions, DType::F32), {"1", "rows", "1"});
    for (size_t i = 0; i < config.ropes.size(); ++i) {
      const auto &rope = config.ropes[i];
      int64_t pairs = int64_t(rope.inverseFrequencies.size());
      Value angle =
          g.binary("mul", places,
                   g.floats("rope.frequencies." + std::to_string(i), rope.inverseFrequencies, {1, 1, pairs}));
      angles.push_back(
          {g.scale(g.unary("cos", angle), rope.magnitude), g.scale(g.unary("sin", angle), rope.magnitude)});
    }
  }

  Value rotate(Value x, int64_t heads, const DecoderLayer &layer) {
    const auto &[cos, sin] = angles[size_t(layer.rope)];
    int64_t rotated = 2 * int64_t(config.ropes[size_t(layer.rope)].inverseFrequencies.size());
    return g.op("rotary_embedding", {x, cos, sin},
                {g.attr("num_heads", heads), g.attr("interleaved", int64_t(config.interleavedRope)),
                 g.attr("rotary_embedding_dim", rotated)});
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
    int64_t queries = config.heads * config.headSize, keys = config.kvHeads * config.headSize;
    Value q, k, v;
    if (g.has(block + "attn_qkv")) {
      if (std::optional<Matrix> all = g.matrixOf(block + "attn_qkv", queries + 2 * keys, config.hidden)) {
        q = g.matmul(x, block + "attn_q", all->slice(0, queries));
        k = g.matmul(x, block + "attn_k", all->slice(queries, keys));
        v = g.matmul(x, block + "attn_v", all->slice(queries + keys, keys));
      }
    } else {
      q = g.matmul(x, block + "attn_q", queries, config.hidden);
      k = g.matmul(x, block + "attn_k", keys, config.hidden);
      v = g.matmul(x, block + "attn_v", keys, config.hidden);
    }
    q = normHeads(q, block + "attn_q_norm", config.heads);
    k = normHeads(k, block + "attn_k_norm", config.kvHeads);
    g.at(block + "attention");
    q = rotate(q, config.heads, settings);
    k = rotate(k, config.kvHeads, settings);
    Cache keyCache = write(caches[index].key, heads(k, config.kvHeads));
    Cache valueCache = write(caches[index].value, heads(v, config.kvHeads));
    Value y = attend(heads(q, config.heads), keyCache, valueCache, settings, {});
    return g.reshape(y, {"1", "rows", text(queries)});
  }

  Value latentAttention(size_t index, Value x) {
    const DecoderLayer &settings = config.layers[index];
    std::string block = "blk." + std::to_string(index) + ".";
    LatentBuilder latent(config, g);
    auto turn = [&](Value rows, int64_t heads) { return rotate(rows, heads, settings); };
    Value q = latent.queries(block, x, turn), row = latent.row(block, x, turn);
    g.at(block + "attention");
    Cache cache = write(caches[index].key, row);
    Value y = attend(q, cache, cache, settings, {g.attr("value_width", config.latent.rank)});
    return latent.values(block, y);
  }

  // q [rows, heads, size] -> [rows, heads, size of values]
  Value attend(Value q, const Cache &keyCache, const Cache &valueCache, const DecoderLayer &settings,
               SmallVector<NamedAttribute> attributes) {
    attributes.push_back(g.attr("scale", config.attentionScale));
    if (config.attentionSoftcap != 0)
      attributes.push_back(g.attr("softcap", config.attentionSoftcap));
    if (settings.window > 0)
      attributes.push_back(g.attr("left_window_size", settings.window - 1));
    SmallVector<Value> operands = {q, keyCache.rows, valueCache.rows, batch[0], batch[1], batch[2]};
    if (keyCache.scales)
      operands.append({keyCache.scales, valueCache.scales});
    return g.op("paged_attention", operands, attributes);
  }

  Cache write(const Cache &cache, Value rows) {
    SmallVector<Value> operands = {cache.rows, rows, batch[0], batch[1], batch[2]};
    if (!cache.scales)
      return {g.op("paged_cache_write", operands), {}};
    operands.push_back(cache.scales);
    SmallVector<Value> written = g.ops("paged_cache_write", operands, {}, 2);
    return {written[0], written[1]};
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
  GraphBuilder &g;
  Value tokens, positions;
  SmallVector<Value> batch; // query_offsets, sequence_lengths, block_table
  std::vector<LayerCaches> caches;
  struct Angle {
    Value cos, sin;
  };
  std::vector<Angle> angles;
};

} // namespace

StatusOr<OwningOpRef<ModuleOp>> buildDecoder(const DecoderConfig &config,
                                             const checkpoint::DecoderWeights &weights,
                                             const DecoderOptions &options, MLIRContext &context,
                                             WeightStore &store) {
  GraphBuilder graph(context, weights, store, options.int8Arithmetic ? "int8" : "f32");
  Decoder(config, options, graph).build();
  if (!graph.status().isOk())
    return graph.status();
  return graph.take();
}

} // namespace dspark::language
