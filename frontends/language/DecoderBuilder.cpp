#include "frontends/language/DecoderBuilder.h"
#include "frontends/language/GraphBuilder.h"

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
      for (const char *kind : {"key", "value"})
        addCache(kind, "." + std::to_string(i));
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

  static std::string text(int64_t number) { return std::to_string(number); }

  void addCache(const std::string &kind, const std::string &layer) {
    std::vector<std::string> dims = {"pages", text(config.kvHeads), "page_size"};
    Cache cache;
    if (options.cacheType == DType::I8)
      cache.scales = g.argument(kind + "_scales" + layer, DType::F32, dims, /*isState=*/true);
    dims.push_back(text(config.headSize));
    cache.rows = g.argument(kind + "_cache" + layer, options.cacheType, dims, /*isState=*/true);
    caches.push_back(cache);
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
    Cache keyCache = write(caches[2 * index], heads(k, config.kvHeads));
    Cache valueCache = write(caches[2 * index + 1], heads(v, config.kvHeads));
    SmallVector<NamedAttribute> attributes = {g.attr("scale", config.attentionScale)};
    if (config.attentionSoftcap != 0)
      attributes.push_back(g.attr("softcap", config.attentionSoftcap));
    if (settings.window > 0)
      attributes.push_back(g.attr("left_window_size", settings.window - 1));
    SmallVector<Value> operands = {
        heads(q, config.heads), keyCache.rows, valueCache.rows, batch[0], batch[1], batch[2]};
    if (keyCache.scales)
      operands.append({keyCache.scales, valueCache.scales});
    Value y = g.op("paged_attention", operands, attributes);
    return g.reshape(y, {"1", "rows", text(queries)});
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

  // Each row goes to the experts that its router puts first.
  Value mixture(const std::string &block, Value x) {
    const checkpoint::ExpertSettings &e = config.experts;
    Value scores = g.op("softmax", {g.matmul(x, block + "ffn_gate_inp", e.count, config.hidden)},
                        {g.attr("axis", int64_t(-1))});
    auto [shares, ids] = g.topK(scores, e.used);
    if (e.normalizes)
      shares = g.binary("div", shares, g.sum(shares, -1, /*keeps=*/true));
    ids = g.reshape(ids, {"rows", text(e.used)});
    std::vector<Matrix> gate = g.expertsOf(block + "ffn_gate_exps", e.count, e.feedForward, config.hidden),
                        up = g.expertsOf(block + "ffn_up_exps", e.count, e.feedForward, config.hidden),
                        down = g.expertsOf(block + "ffn_down_exps", e.count, config.hidden, e.feedForward);
    Value y = g.experts(g.reshape(x, {"rows", "1", text(config.hidden)}), ids, block + "ffn_exps", gate, up,
                        config.activation);
    y = g.experts(y, ids, block + "ffn_down_exps", {}, down);
    y = g.sum(g.binary("mul", y, g.reshape(shares, {"rows", text(e.used), "1"})), 1, /*keeps=*/false);
    return g.reshape(y, {"1", "rows", text(config.hidden)});
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
    x = project(x, attention(index, normed), block + "attn_output", block + "post_attention_norm",
                config.heads * config.headSize);
    normed = g.norm(x, block + "ffn_norm", config.hidden, config.normEpsilon);
    if (g.has(block + "ffn_gate_inp"))
      return g.binary("add", x, mixture(block, normed));
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
  SmallVector<Value> batch;  // query_offsets, sequence_lengths, block_table
  std::vector<Cache> caches; // keys and values of layer 0, of layer 1 ...
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
