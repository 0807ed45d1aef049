// Operators of com.microsoft that become several of the catalogue: attention in its packed and cached forms,
// embeddings, convolutions with an activation. onnxruntime's documentation of contrib operators is the
// reference.
#include "frontends/onnx/Node.h"
#include "frontends/onnx/ops/CropAndResize.h"
#include <cmath>

namespace dspark::onnx {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

// --- small parts ---

/// x[begin:end] along axis.
mlir::Value part(Node &n, mlir::Value x, int64_t begin, int64_t end, int64_t axis) {
  return n.one("slice", {x, n.list({begin}), n.list({end}), n.list({axis})});
}
mlir::Value dimOf(Node &n, mlir::Value x, int64_t axis) {
  mlir::Value dim = n.one("shape", {x}, {n.attr("start", axis), n.attr("end", axis + 1)});
  return n.one("squeeze", {dim, n.list({0})});
}
/// 0, 1 ... count - 1 as i64.
mlir::Value countTo(Node &n, mlir::Value count) {
  return n.one("range", {n.intScalar(0), count, n.intScalar(1)});
}
mlir::Value unsqueeze(Node &n, mlir::Value x, const std::vector<int64_t> &axes) {
  return n.one("unsqueeze", {x, n.list(axes)});
}
/// [B, S, N * D] -> [B, N, S, D]
mlir::Value toHeads(Node &n, mlir::Value x, int64_t heads) {
  return n.one("transpose", {n.one("reshape", {x, n.list({0, 0, heads, -1})})},
               {n.attr("perm", std::vector<int64_t>{0, 2, 1, 3})});
}
/// [B, N, S, D] -> [B, S, N * D]
mlir::Value fromHeads(Node &n, mlir::Value x) {
  return n.one("reshape", {n.one("transpose", {x}, {n.attr("perm", std::vector<int64_t>{0, 2, 1, 3})}),
                           n.list({0, 0, -1})});
}
bool refuse(Node &n, bool unless, const char *what) {
  if (!unless)
    n.unsupported(std::string(what) + " is not supported");
  return !unless;
}

// --- attention ---

/// A mask of 0 and 1 as something to add to scores: `filter` where it is 0.
mlir::Value additive(Node &n, mlir::Value mask, mlir::Value like, double filter) {
  mlir::Value isKept = n.type(mask) == DType::Bool ? mask : n.cast(mask, DType::Bool);
  return n.one("select", {isKept, n.scalarLike(like, 0), n.scalarLike(like, filter)});
}
mlir::Value addMasks(Node &n, mlir::Value a, mlir::Value b) {
  return a && b ? n.binary("add", a, b) : a ? a : b;
}

/// Operand `at`, an integer mask [B, T] or [B, S, T] of keys, as [B, 1, 1 or S, T] to add; also key lengths
/// [B].
mlir::Value keyMask(Node &n, size_t at, mlir::Value like, mlir::Value keys) {
  if (!n.has(at))
    return {};
  auto rank = n.rank(n.in(at));
  if (refuse(n, rank && *rank >= 1 && *rank <= 3, "a mask of unknown rank or of more than 3 dims"))
    return {};
  mlir::Value mask = n.in(at);
  TensorInfo info = n.info(mask);
  if (*rank == 1) { // lengths
    Dim batch = n.info(like).hasRank ? n.info(like).dims[0] : Dim();
    if (refuse(n, info.dims[0].provablyEqual(batch), "a mask of one dim that is not the batch"))
      return {};
    mask = n.compare("lt", countTo(n, keys), unsqueeze(n, n.cast(mask, DType::I64), {1}));
  }
  mask = unsqueeze(n, mask, *rank == 3 ? std::vector<int64_t>{1} : std::vector<int64_t>{1, 2});
  return additive(n, mask, like, n.f("mask_filter_value", -10000));
}

/// softmax(q k^T * scale + mask) v; with past, also the grown keys and values.
Values attend(Node &n, const Values &qkv, mlir::Value mask, mlir::Value pastKey, mlir::Value pastValue,
              int64_t heads, int64_t kvHeads, bool isCausal, Attributes attributes = {}) {
  if (n.rank(qkv[0]) != 4) {
    attributes.push_back(n.attr("q_num_heads", heads));
    attributes.push_back(n.attr("kv_num_heads", kvHeads));
  }
  if (n.f("scale", 0) != 0)
    attributes.push_back(n.attr("scale", n.f("scale", 0)));
  if (isCausal)
    attributes.push_back(n.attr("is_causal", int64_t(1)));
  return n.emit("attention", {qkv[0], qkv[1], qkv[2], mask, pastKey, pastValue}, attributes, 3);
}

/// Q, K and V of MultiHeadAttention as three operands of one rank; empty, with the node refused, if they are
/// not.
Values separateHeads(Node &n, int64_t heads) {
  mlir::Value q = n.in(0), k = n.in(1), v = n.in(2);
  auto packed = [&](mlir::Value x, int64_t place) { // [B, L, N, many, D] -> [B, N, L, D]
    mlir::Value one = n.one("squeeze", {part(n, x, place, place + 1, 3), n.list({3})});
    return n.one("transpose", {one}, {n.attr("perm", std::vector<int64_t>{0, 2, 1, 3})});
  };
  bool isPacked = n.rank(q) == 5 || n.rank(k) == 5;
  if (isPacked && refuse(n, !n.has(3), "a bias of packed operands"))
    return {};
  if (n.rank(q) == 5)
    return {packed(q, 0), packed(q, 1), packed(q, 2)};
  if (n.rank(k) == 5)
    return {toHeads(n, q, heads), packed(k, 0), packed(k, 1)};
  if (!k || !v || n.rank(q) != 3) {
    n.unsupported("MultiHeadAttention needs query, key and value of known rank");
    return {};
  }
  if (n.has(3)) {
    TensorInfo query = n.info(q);
    if (refuse(n, query.dims[2].isConst(), "a bias of unknown hidden size"))
      return {};
    int64_t hidden = query.dims[2].value();
    q = n.binary("add", q, part(n, n.in(3), 0, hidden, 0));
    if (n.rank(k) == 3)
      k = n.binary("add", k, part(n, n.in(3), hidden, 2 * hidden, 0));
    if (n.rank(v) == 3)
      v = n.binary("add", v, part(n, n.in(3), 2 * hidden, INT64_MAX, 0));
  }
  if (n.rank(k) == 4)
    return {toHeads(n, q, heads), k, v};
  return {q, k, v};
}

void buildMultiHeadAttention(Node &n) {
  if (refuse(n, !n.has(8) && !n.has(9) && !n.wants(3), "a shared cache, beam search or the result qk"))
    return;
  int64_t heads = n.i("num_heads", 0);
  Values qkv = separateHeads(n, heads);
  if (n.failed())
    return;
  bool isSplit = n.rank(qkv[0]) == 4;
  mlir::Value keys = dimOf(n, qkv[1], isSplit ? 2 : 1);
  if (n.has(6))
    keys = n.binary("add", keys, dimOf(n, n.in(6), 2));
  mlir::Value mask = addMasks(n, keyMask(n, 4, qkv[0], keys), n.in(5));
  Values results = attend(n, qkv, mask, n.in(6), n.in(7), heads, heads, n.i("unidirectional", 0) != 0);
  if (n.failed())
    return;
  n.out(0, isSplit ? fromHeads(n, results[0]) : results[0]);
  n.out(1, results[1]);
  n.out(2, results[2]);
}

/// input @ weights + bias is query, key and value in a row.
void buildAttention(Node &n) {
  if (refuse(n, !n.i("do_rotary", 0) && !n.i("past_present_share_buffer", 0),
             "rotary embedding or a shared cache"))
    return;
  TensorInfo weights = n.info(n.in(1));
  std::vector<int64_t> sizes = n.ints("qkv_hidden_sizes");
  if (sizes.empty() && weights.rank() == 2 && weights.dims[1].isConst())
    sizes.assign(3, weights.dims[1].value() / 3);
  if (refuse(n, sizes.size() == 3, "Attention with weights of unknown size"))
    return;
  int64_t heads = n.i("num_heads", 0);
  mlir::Value all = n.one("matmul", {n.in(0), n.in(1), n.in(2)});
  Values qkv = n.emit("split", {all, n.list(sizes)}, {n.attr("axis", int64_t(-1))}, 3);
  mlir::Value pastKey, pastValue, keys = dimOf(n, n.in(0), 1);
  if (n.has(4)) { // [2, B, N, P, D]
    auto half = [&](int64_t k) { return n.one("squeeze", {part(n, n.in(4), k, k + 1, 0), n.list({0})}); };
    pastKey = half(0), pastValue = half(1);
    keys = n.binary("add", keys, dimOf(n, n.in(4), 3));
  }
  mlir::Value mask = n.failed() ? mlir::Value() : addMasks(n, keyMask(n, 3, n.in(0), keys), n.in(5));
  if (n.failed())
    return;
  Values results = attend(n, qkv, mask, pastKey, pastValue, heads, heads, n.i("unidirectional", 0) != 0);
  n.out(0, results[0]);
  if (n.wants(1) && !n.failed())
    n.out(1, n.one("concat", {unsqueeze(n, results[1], {0}), unsqueeze(n, results[2], {0})},
                   {n.attr("axis", int64_t(0))}));
}

/// Keys of sequence b end at seqlens_k[b] + 1, its queries are the last of them (or the first, in a padded
/// prompt).
void buildGroupQueryAttention(Node &n) {
  for (size_t i = 11; i < 16; ++i)
    if (refuse(n, !n.has(i), "a sink, quantised cache or norm of GroupQueryAttention"))
      return;
  bool isPlain =
      !n.i("smooth_softmax", 0) && !n.i("sliding_window_cache", 0) && !n.wants(3) && n.i("causal", 1);
  if (refuse(n, isPlain, "this form of GroupQueryAttention"))
    return;
  if (!n.has(5) || !n.has(6))
    return n.invalid("operands 5 and 6, seqlens_k and total_sequence_length, are required");
  int64_t heads = n.i("num_heads", 0), kvHeads = n.i("kv_num_heads", 0);
  if (heads < 1 || kvHeads < 1)
    return n.invalid("num_heads and kv_num_heads are " + std::to_string(heads) + " and " +
                     std::to_string(kvHeads) + "; expected at least 1");
  Values qkv(n.inputs().begin(), n.inputs().begin() + 3);
  if (!n.has(1)) { // packed
    TensorInfo query = n.info(n.in(0));
    if (refuse(n, query.rank() == 3 && query.dims[2].isConst(), "a packed query of unknown size"))
      return;
    int64_t size = query.dims[2].value() / (heads + 2 * kvHeads);
    qkv = n.emit("split", {n.in(0), n.list({heads * size, kvHeads * size, kvHeads * size})},
                 {n.attr("axis", int64_t(-1))}, 3);
  }
  mlir::Value tokens = dimOf(n, n.in(0), 1), one = n.intScalar(1);
  mlir::Value lengths = n.binary("add", n.one("reshape", {n.cast(n.in(5), DType::I64), n.list({-1})}), one);
  mlir::Value past = n.binary("max", n.binary("sub", lengths, tokens), n.intScalar(0)); // [B]
  mlir::Value positions = n.binary("add", unsqueeze(n, past, {1}), countTo(n, tokens)); // [B, S]
  if (n.i("do_rotary", 0)) {
    mlir::Value ids = n.has(9) ? n.in(9) : positions;
    TensorInfo cache = n.info(n.in(7));
    if (refuse(n, cache.rank() == 2 && cache.dims[1].isConst(), "a table of cosines of unknown size"))
      return;
    int64_t rotated = 2 * cache.dims[1].value();
    auto rotate = [&](mlir::Value x, int64_t count) {
      return n.one("rotary_embedding", {x, n.in(7), n.in(8), ids},
                   {n.attr("num_heads", count), n.attr("interleaved", n.i("rotary_interleaved", 0)),
                    n.attr("rotary_embedding_dim", rotated)});
    };
    qkv[0] = rotate(qkv[0], heads);
    qkv[1] = rotate(qkv[1], kvHeads);
  }
  if (n.failed())
    return;
  mlir::Value k = toHeads(n, qkv[1], kvHeads), v = toHeads(n, qkv[2], kvHeads);
  // The cache as long as the longest sequence now is, or as it was; new tokens go behind each sequence's old
  // ones.
  mlir::Value total = n.one("reshape", {n.cast(n.in(6), DType::I64), n.list({})});
  auto grown = [&](mlir::Value cache, mlir::Value fresh) {
    if (!cache)
      return fresh;
    mlir::Value more = n.binary("max", n.binary("sub", total, dimOf(n, cache, 2)), n.intScalar(0));
    mlir::Value pads = n.one("concat", {n.list({0, 0, 0, 0, 0, 0}), unsqueeze(n, more, {0}), n.list({0})},
                             {n.attr("axis", int64_t(0))});
    return n.one("tensor_scatter", {n.one("pad", {cache, pads}), fresh, past}, {n.attr("axis", int64_t(2))});
  };
  k = grown(n.in(3), k);
  v = grown(n.in(4), v);
  // Key t is seen by query s where t <= position(s), and t > position(s) - window.
  mlir::Value at = unsqueeze(n, positions, {1, 3}), keys = countTo(n, dimOf(n, k, 2));
  mlir::Value seen = n.compare("le", keys, at);
  if (int64_t window = n.i("local_window_size", -1); window > 0)
    seen = n.binary("and", seen, n.compare("gt", keys, n.binary("sub", at, n.intScalar(window))));
  mlir::Value mask = seen;
  if (n.has(10))
    mask = n.one("select", {seen, n.in(10), n.scalarLike(n.in(10), -HUGE_VAL)});
  Attributes attributes;
  if (n.f("softcap", 0) != 0)
    attributes.push_back(n.attr("softcap", n.f("softcap", 0)));
  Values results =
      attend(n, {toHeads(n, qkv[0], heads), k, v}, mask, {}, {}, heads, kvHeads, false, attributes);
  if (n.failed())
    return;
  n.out(0, fromHeads(n, results[0]));
  n.out(1, k);
  n.out(2, v);
}

/// position_ids [1] is where all sequences begin.
void buildRotaryEmbedding(Node &n) {
  if (refuse(n, !n.i("is_packed_batching", 0) && n.f("scale", 1) == 1, "packed batching or a scale"))
    return;
  auto rank = n.rank(n.in(0)), idRank = n.rank(n.in(1));
  if (refuse(n, rank && idRank, "RotaryEmbedding of operands of unknown rank"))
    return;
  mlir::Value ids = n.in(1);
  if (*idRank == 1) {
    mlir::Value row =
        unsqueeze(n, n.binary("add", countTo(n, dimOf(n, n.in(0), *rank == 4 ? 2 : 1)), ids), {0});
    mlir::Value shape = n.one(
        "concat",
        {n.one("shape", {n.in(0)}, {n.attr("start", int64_t(0)), n.attr("end", int64_t(1))}), n.list({1})},
        {n.attr("axis", int64_t(0))});
    ids = n.one("expand", {row, shape});
  }
  Attributes attributes = n.pick("interleaved rotary_embedding_dim");
  auto rotate = [&](mlir::Value x) {
    return n.one("rotary_embedding", {x, n.in(2), n.in(3), ids}, attributes);
  };
  if (*rank == 4)
    return n.out(0, rotate(n.in(0)));
  if (n.i("num_heads", 0) > 0) {
    attributes.push_back(n.attr("num_heads", n.i("num_heads", 0)));
    return n.out(0, rotate(n.in(0)));
  }
  // Heads are as wide as the tables say.
  TensorInfo cache = n.info(n.in(2));
  if (refuse(n, cache.rank() == 2 && cache.dims[1].isConst(),
             "RotaryEmbedding without num_heads and with tables of unknown size"))
    return;
  mlir::Value split = n.one("reshape", {n.in(0), n.list({0, 0, -1, 2 * cache.dims[1].value()})});
  n.out(0, fromHeads(
               n, rotate(n.one("transpose", {split}, {n.attr("perm", std::vector<int64_t>{0, 2, 1, 3})}))));
}

// --- embeddings and activations ---

void buildEmbedLayerNorm(Node &n) {
  mlir::Value positions = n.has(8) ? n.in(8) : countTo(n, dimOf(n, n.in(0), 1));
  mlir::Value sum =
      n.binary("add", n.one("gather", {n.in(2), n.in(0)}), n.one("gather", {n.in(3), positions}));
  if (n.has(1) && n.has(4))
    sum = n.binary("add", sum, n.one("gather", {n.in(4), n.in(1)}));
  n.out(0, n.one("layer_norm", {sum, n.in(5), n.in(6)},
                 {n.attr("kind", "layer"), n.attr("axis", int64_t(-1)),
                  n.attr("epsilon", n.f("epsilon", 1e-12))}));
  if (n.wants(1)) {
    mlir::Value mask = n.has(7) ? n.in(7) : n.binary("sub", n.in(0), n.in(0)); // no mask: no counts
    n.out(1, n.cast(n.reduce("sum", mask, {1}, false), DType::I32));
  }
  n.out(2, sum);
}

/// a * gelu(b) of the two halves of x + bias.
void buildBiasSplitGelu(Node &n) {
  Values halves = n.emit("split", {n.binary("add", n.in(0), n.in(1))},
                         {n.attr("axis", int64_t(-1)), n.attr("num_outputs", int64_t(2))}, 2);
  if (!n.failed())
    n.out(0, n.binary("mul", halves[0], n.unary("gelu", halves[1])));
}

mlir::Value activated(Node &n, mlir::Value x) {
  std::string name = n.s("activation", "");
  std::vector<double> params = n.floats("activation_params");
  auto param = [&](size_t i, double otherwise) { return i < params.size() ? params[i] : otherwise; };
  if (name == "Relu" || name == "Sigmoid" || name == "Tanh")
    return n.unary(name == "Relu" ? "relu" : name == "Tanh" ? "tanh" : "sigmoid", x);
  if (name == "LeakyRelu")
    return n.one("unary", {x}, {n.attr("kind", "leaky_relu"), n.attr("alpha", param(0, 0.01))});
  if (name == "HardSigmoid")
    return n.one(
        "unary", {x},
        {n.attr("kind", "hard_sigmoid"), n.attr("alpha", param(0, 0.2)), n.attr("beta", param(1, 0.5))});
  if (name == "Clip" && params.size() == 2)
    return n.one("clip", {x, n.scalarLike(x, params[0]), n.scalarLike(x, params[1])});
  n.unsupported("the activation '" + name + "' is not supported");
  return {};
}

constexpr std::string_view kWindow = "auto_pad dilations group kernel_shape pads strides";
void buildFusedConv(Node &n) {
  mlir::Value y = n.one("conv", {n.in(0), n.in(1), n.in(2)}, n.pick(kWindow));
  if (n.has(3))
    y = n.binary("add", y, n.in(3));
  n.out(0, n.hasAttribute("activation") ? activated(n, y) : y);
}
void buildNhwcConv(Node &n) {
  Attributes attributes = n.pick(kWindow);
  attributes.push_back(n.attr("layout", "nhwc"));
  n.out(0, n.one("conv", n.inputs(), attributes));
}

// --- the rest ---

/// The first of each in order of appearance; its places; how often it is there.
void buildUnique(Node &n) {
  Values results = n.emit("unique", {n.in(0)}, {n.attr("sorted", int64_t(0))}, 4);
  if (n.failed())
    return;
  n.out(0, results[0]);
  n.out(1, results[2]);
  n.out(2, results[3]);
}

/// Rows of values, scales and zero points, then their product: only what is gathered is dequantised.
void buildGatherBlockQuantized(Node &n) {
  TensorInfo data = n.info(n.in(0));
  auto indexRank = n.rank(n.in(1));
  bool isPackedBytes = data.type == DType::U8 && n.i("bits", 4) != 8;
  if (refuse(n, data.hasRank && indexRank && !isPackedBytes,
             "GatherBlockQuantized of packed bytes or of unknown rank"))
    return;
  int64_t rank = data.rank(), gather = n.i("gather_axis", 0), quantize = n.i("quantize_axis", 1);
  gather += gather < 0 ? rank : 0;
  quantize += quantize < 0 ? rank : 0;
  if (refuse(n, gather != quantize, "gathering along the axis of the blocks"))
    return;
  auto rows = [&](size_t i) {
    return n.has(i) ? n.one("gather", {n.in(i), n.in(1)}, {n.attr("axis", gather)}) : mlir::Value();
  };
  int64_t axis = quantize > gather ? quantize + *indexRank - 1 : quantize;
  mlir::Value zero = rows(3);
  if (!zero && n.type(n.in(0)) == DType::U4)
    return n.unsupported("GatherBlockQuantized of u4 without zero points is not supported");
  n.out(0, n.one("dequantize_linear", {rows(0), rows(2), zero},
                 {n.attr("axis", axis), n.attr("block_size", n.i("block_size", 128))}));
}

void buildLinearAttention(Node &n) {
  if (!refuse(n, !n.i("state_window", 0), "a state window"))
    n.outs(n.emit("linear_attention", n.inputs(),
                  n.pick("chunk_size kv_num_heads q_num_heads scale update_rule"), 2));
}
void buildCausalConv(Node &n) {
  bool isPlain =
      n.i("ndim", 1) == 1 && n.i("dilation", 1) == 1 && !n.i("channels_last", 0) && !n.i("state_window", 0);
  if (!refuse(n, isPlain, "this form of CausalConvWithState"))
    n.outs(n.emit("causal_conv_with_state", n.inputs(), n.pick("activation"), 2));
}

constexpr OpRow rows[] = {
    in(kDomain, built("MultiHeadAttention", 1, {1, 10, 1, 4}, buildMultiHeadAttention,
                      "mask_filter_value:f num_heads:i! scale:f unidirectional:i")),
    in(kDomain,
       built("Attention", 1, {2, 7, 1, 2}, buildAttention,
             "do_rotary:i mask_filter_value:f num_heads:i! past_present_share_buffer:i qkv_hidden_sizes:I "
             "rotary_embedding_dim:i scale:f unidirectional:i")),
    in(kDomain,
       built("GroupQueryAttention", 1, {1, 16, 1, 4}, buildGroupQueryAttention,
             "causal:i do_rotary:i k_quant_type:s kv_cache_bit_width:i kv_num_heads:i! local_window_size:i "
             "num_heads:i! qk_norm_epsilon:f qk_output:i rotary_interleaved:i scale:f sliding_window_cache:i "
             "smooth_softmax:i softcap:f v_quant_type:s")),
    in(kDomain, built("RotaryEmbedding", 1, {4, 4}, buildRotaryEmbedding,
                      "interleaved:i is_packed_batching:i num_heads:i rotary_embedding_dim:i scale:f")),
    in(kDomain,
       built("EmbedLayerNormalization", 1, {7, 9, 1, 3}, buildEmbedLayerNorm, "epsilon:f mask_index_type:i")),
    in(kDomain, built("BiasSplitGelu", 1, {2, 2}, buildBiasSplitGelu)),
    in(kDomain, built("FusedConv", 1, {2, 4}, buildFusedConv,
                      "activation:s activation_params:F auto_pad:s dilations:I group:i kernel_shape:I pads:I "
                      "strides:I")),
    in(kDomain, built("NhwcConv", 1, {2, 3}, buildNhwcConv,
                      "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I")),
    in(kDomain, built("CropAndResize", 1, {4, 4}, buildCropAndResize, "extrapolation_value:f mode:s")),
    in(kDomain, direct("Trilu", 1, {1, 2}, "trilu", "upper:i")),
    in(kDomain, built("Unique", 1, {1, 1, 3, 3}, buildUnique)),
    in(kDomain, built("GatherBlockQuantized", 1, {3, 4}, buildGatherBlockQuantized,
                      "bits:i block_size:i gather_axis:i quantize_axis:i")),
    in(kDomain, built("LinearAttention", 1, {3, 6, 1, 2}, buildLinearAttention,
                      "chunk_size:i kv_num_heads:i! q_num_heads:i! scale:f state_window:i update_rule:s")),
    in(kDomain, built("CausalConvWithState", 1, {2, 4, 1, 2}, buildCausalConv,
                      "activation:s channels_last:i dilation:i ndim:i state_window:i")),
};

} // namespace

OpRows contribRows() { return rows; }

} // namespace dspark::onnx
