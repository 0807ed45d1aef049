// Operators of com.microsoft whose rows go different ways: attention over sequences laid end to end, and
// mixtures of experts. onnxruntime's documentation of contrib operators is the reference.
#include "frontends/onnx/Node.h"

namespace dspark::onnx {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

bool refuse(Node &n, bool unless, const char *what) {
  if (!unless)
    n.unsupported(std::string(what) + " is not supported");
  return !unless;
}

/// Tokens of all sequences in a row attend to those of their own: [tokens, N * D], cumulative lengths [B +
/// 1]. The products are of all tokens with all; a mask keeps the sequences apart.
void buildPackedMultiHeadAttention(Node &n) {
  int64_t heads = n.i("num_heads", 0);
  if (heads < 1)
    return n.invalid("num_heads is " + std::to_string(heads) + "; expected at least 1");
  if (!n.has(5))
    return n.invalid("operand 5, the cumulative sequence lengths, is required");
  if (refuse(n, !n.has(3) && !n.has(6), "a bias of PackedMultiHeadAttention"))
    return;
  Values qkv(n.inputs().begin(), n.inputs().begin() + 3);
  if (!n.has(1)) { // [tokens, N, 3, D]
    if (refuse(n, n.rank(n.in(0)) == 4, "a packed query of another rank than 4"))
      return;
    Values parts =
        n.emit("split", {n.in(0)}, {n.attr("axis", int64_t(2)), n.attr("num_outputs", int64_t(3))}, 3);
    for (size_t i = 0; i < 3; ++i)
      qkv[i] = n.one("reshape", {parts[i], n.list({0, -1})});
  }
  mlir::Value tokens =
      n.one("squeeze", {n.one("shape", {qkv[0]}, {n.attr("start", int64_t(0)), n.attr("end", int64_t(1))}),
                        n.list({0})});
  mlir::Value places = n.one("range", {n.intScalar(0), tokens, n.intScalar(1)});
  // A token's sequence is how many cumulative lengths it has reached.
  mlir::Value ends = n.one("unsqueeze", {n.cast(n.in(5), DType::I64), n.list({0})});
  mlir::Value reached = n.compare("ge", n.one("unsqueeze", {places, n.list({1})}), ends);
  mlir::Value sequence = n.reduce("sum", n.cast(reached, DType::I64), {1}, false);
  mlir::Value isOwn = n.compare("eq", n.one("unsqueeze", {sequence, n.list({1})}),
                                n.one("unsqueeze", {sequence, n.list({0})}));
  for (mlir::Value &value : qkv)
    value = n.one("unsqueeze", {value, n.list({0})});
  Attributes attributes = {n.attr("q_num_heads", heads), n.attr("kv_num_heads", heads)};
  if (n.f("scale", 0) != 0)
    attributes.push_back(n.attr("scale", n.f("scale", 0)));
  Values results = n.emit("attention", {qkv[0], qkv[1], qkv[2], isOwn, {}, {}}, attributes, 3);
  if (!n.failed())
    n.out(0, n.one("squeeze", {results[0], n.list({0})}));
}

/// softmax of the routers' scores [T, E], 0 where an expert is not among the k best: [T, E].
mlir::Value gates(Node &n, int64_t k) {
  mlir::Value all = n.one("softmax", {n.in(1)}, {n.attr("kind", "softmax"), n.attr("axis", int64_t(-1))});
  Values best = n.emit("top_k", {all, n.list({k})}, {n.attr("axis", int64_t(-1))}, 2);
  if (n.failed())
    return {};
  mlir::Value weights = best[0];
  if (n.i("normalize_routing_weights", 0))
    weights = n.binary("div", weights, n.reduce("sum", weights, {-1}));
  mlir::Value zeros = n.binary("mul", all, n.scalarLike(all, 0));
  return n.one("scatter_elements", {zeros, best[1], weights}, {n.attr("axis", int64_t(-1))});
}

mlir::Value swish(Node &n, mlir::Value x, double alpha) {
  return n.one("unary", {x}, {n.attr("kind", "swish"), n.attr("alpha", alpha)});
}

/// G * sigmoid(alpha G) * (L + beta) of the gate and the linear part, clipped by swiglu_limit.
mlir::Value swiglu(Node &n, mlir::Value gate, mlir::Value linear) {
  if (n.hasAttribute("swiglu_limit")) {
    double limit = n.f("swiglu_limit", 0);
    gate = n.binary("min", gate, n.scalarLike(gate, limit));
    linear = n.one("clip", {linear, n.scalarLike(linear, -limit), n.scalarLike(linear, limit)});
  }
  mlir::Value opened = swish(n, gate, n.f("activation_alpha", 1));
  return n.binary("mul", opened, n.binary("add", linear, n.scalarLike(linear, n.f("activation_beta", 0))));
}

/// Weights [E, O, I] and biases [E, O] of one of the products; null where the node has none.
struct Layer {
  mlir::Value weights, bias;
};

/// x [1 or E, T, I] @ weights' + bias
mlir::Value product(Node &n, mlir::Value x, const Layer &layer) {
  mlir::Value y = n.one("matmul", {x, layer.weights}, {n.attr("trans_b", int64_t(1))});
  return layer.bias ? n.binary("add", y, n.one("unsqueeze", {layer.bias, n.list({1})})) : y;
}

mlir::Value activated(Node &n, mlir::Value first, mlir::Value x, const Layer &third) {
  std::string name = n.s("activation_type", "relu");
  if (name == "relu" || name == "gelu")
    return n.unary(name, first);
  if (name == "silu")
    return swish(n, first, 1);
  if (name == "identity")
    return first;
  int64_t fusion = n.i("swiglu_fusion", 0);
  if (name != "swiglu" || fusion < 0 || fusion > 2 || (fusion == 0) != bool(third.weights)) {
    n.unsupported("the activation '" + name + "' with swiglu_fusion " + std::to_string(fusion) +
                  " and these weights is not supported");
    return {};
  }
  if (fusion == 0)
    return swiglu(n, first, product(n, x, third));
  Attributes inTwo = {n.attr("axis", int64_t(-1)), n.attr("num_outputs", int64_t(2))};
  if (fusion == 2) {
    Values halves = n.emit("split", {first}, inTwo, 2);
    return n.failed() ? mlir::Value() : swiglu(n, halves[0], halves[1]);
  }
  Values parts =
      n.emit("split", {n.one("reshape", {first, n.list({0, 0, -1, 2})})}, inTwo, 2); // they alternate
  if (n.failed())
    return {};
  return swiglu(n, n.one("squeeze", {parts[0], n.list({-1})}), n.one("squeeze", {parts[1], n.list({-1})}));
}

/// Every expert computes every token, and those that a token did not choose count 0 times.
void mix(Node &n, int64_t hidden, const Layer &first, const Layer &second, const Layer &third) {
  auto rank = n.rank(n.in(0));
  if (refuse(n, rank == 2 || rank == 3, "an operand of another rank than 2 and 3") ||
      refuse(n, !n.i("use_sparse_mixer", 0), "the sparse mixer"))
    return;
  mlir::Value gate = gates(n, n.i("k", 1));
  mlir::Value x = n.one("reshape", {n.in(0), n.list({1, -1, hidden})});
  mlir::Value inner = activated(n, product(n, x, first), x, third);
  if (n.failed())
    return;
  mlir::Value results = product(n, inner, second); // [E, T, H]
  mlir::Value perExpert = n.one("transpose", {gate}, {n.attr("perm", std::vector<int64_t>{1, 0})});
  mlir::Value share = n.one("unsqueeze", {perExpert, n.list({2})});
  n.out(0, n.reshapeLike(n.reduce("sum", n.binary("mul", results, share), {0}, false), n.in(0)));
}

void buildMoE(Node &n) {
  if (!n.has(4))
    return n.invalid("operand 4, the second weights, is required");
  TensorInfo weights = n.info(n.in(2));
  if (refuse(n, weights.hasRank && weights.rank() == 3 && weights.dims[2].isConst(),
             "weights of unknown size"))
    return;
  mix(n, weights.dims[2].value(), {n.in(2), n.in(3)}, {n.in(4), n.in(5)}, {n.in(6), n.in(7)});
}

/// (codes - zero point) * scale of weights [E, O, I / pack], the first code of a byte in its low bits, with a
/// scale per [E, O] or per block [E, O, I / block]. They become floats when the plan is written.
mlir::Value dequantized(Node &n, size_t weightsAt, size_t scalesAt, int64_t bits, int64_t block) {
  if (!n.has(weightsAt))
    return {};
  mlir::Value codes = n.in(weightsAt), scales = n.in(scalesAt);
  TensorInfo info = n.info(codes);
  bool isKnown = info.hasRank && info.rank() == 3 && info.type == DType::U8 && info.dims[0].isConst() &&
                 info.dims[1].isConst() && info.dims[2].isConst() && scales;
  if (refuse(n, isKnown, "weights of unknown size or without scales"))
    return {};
  int64_t experts = info.dims[0].value(), rows = info.dims[1].value(), columns = info.dims[2].value();
  if (bits < 8) {
    Values parts;
    for (int64_t place = 0; place < 8; place += bits) {
      mlir::Value shifted = n.binary("bitand", n.binary("shr", codes, n.scalarLike(codes, double(place))),
                                     n.scalarLike(codes, double((1 << bits) - 1)));
      parts.push_back(n.one("unsqueeze", {shifted, n.list({3})}));
    }
    columns *= 8 / bits;
    codes = n.one("reshape",
                  {n.one("concat", parts, {n.attr("axis", int64_t(3))}), n.list({experts, rows, columns})});
  }
  mlir::Value centred =
      n.binary("sub", n.cast(codes, DType::F32), n.scalar(DType::F32, double(1 << (bits - 1))));
  if (n.type(scales) != DType::F32)
    scales = n.cast(scales, DType::F32);
  if (block > 0 && columns % block != 0) {
    n.invalid("rows of " + std::to_string(columns) + " weights; expected a multiple of block_size " +
              std::to_string(block));
    return {};
  }
  int64_t wide = block > 0 ? block : columns;
  mlir::Value blocks = n.one("reshape", {centred, n.list({experts, rows, columns / wide, wide})});
  mlir::Value factors = n.one("reshape", {scales, n.list({experts, rows, columns / wide, 1})});
  mlir::Value wideWeights =
      n.one("reshape", {n.binary("mul", blocks, factors), n.list({experts, rows, columns})});
  return n.type(n.in(0)) == DType::F32 ? wideWeights : n.cast(wideWeights, n.type(n.in(0)));
}

void buildQMoE(Node &n) {
  int64_t bits = n.i("expert_weight_bits", 4), block = n.i("block_size", 0);
  if (bits != 2 && bits != 4 && bits != 8)
    return n.invalid("expert_weight_bits is " + std::to_string(bits) + "; expected 2, 4 or 8");
  if (!n.has(5))
    return n.invalid("operand 5, the second weights, is required");
  bool isPlain = n.s("quant_type", "int") == "int" && n.i("weights_prepacked", -1) <= 0;
  for (size_t i = 11; i < 21; ++i)
    isPlain &= !n.has(i);
  if (refuse(n, isPlain, "QMoE with zero points, router weights, prepacked or floating-point weights"))
    return;
  TensorInfo weights = n.info(n.in(2));
  if (refuse(n, weights.hasRank && weights.rank() == 3 && weights.dims[2].isConst(),
             "weights of unknown size"))
    return;
  int64_t hidden = weights.dims[2].value() * (8 / bits);
  Layer first = {dequantized(n, 2, 3, bits, block), n.in(4)},
        second = {dequantized(n, 5, 6, bits, block), n.in(7)},
        third = {dequantized(n, 8, 9, bits, block), n.in(10)};
  if (!n.failed())
    mix(n, hidden, first, second, third);
}

constexpr OpRow rows[] = {
    in(kDomain, built("PackedMultiHeadAttention", 1, {1, 7}, buildPackedMultiHeadAttention,
                      "mask_filter_value:f num_heads:i! scale:f")),
    in(kDomain,
       built("MoE", 1, {3, 8}, buildMoE,
             "activation_alpha:f activation_beta:f activation_type:s k:i normalize_routing_weights:i "
             "swiglu_fusion:i swiglu_limit:f use_sparse_mixer:i")),
    in(kDomain, built("QMoE", 1, {3, 21}, buildQMoE,
                      "accuracy_level:i activation_alpha:f activation_beta:f activation_type:s block_size:i "
                      "expert_weight_bits:i k:i normalize_routing_weights:i quant_type:s swiglu_fusion:i "
                      "swiglu_limit:f use_sparse_mixer:i weights_prepacked:i")),
    in(kDomain, direct("Inverse", 1, {}, "inverse")),
};

} // namespace

OpRows expertRows() { return rows; }

} // namespace dspark::onnx
