// Operators of com.microsoft that have an equal in the catalogue.
#include "frontends/onnx/Node.h"

namespace dspark::onnx {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

void buildGelu(Node &n) { n.out(0, n.unary("gelu", n.in(0))); }
/// gelu_tanh(x + bias).
void buildFastGelu(Node &n) {
  mlir::Value x = n.has(1) ? n.binary("add", n.in(0), n.in(1)) : n.in(0);
  n.out(0, n.unary("gelu_tanh", x));
}
void buildBiasGelu(Node &n) { n.out(0, n.unary("gelu", n.binary("add", n.in(0), n.in(1)))); }
/// x * sigmoid(alpha x).
void buildQuickGelu(Node &n) {
  n.out(0, n.one("unary", {n.in(0)}, {n.attr("kind", "swish"), n.attr("alpha", n.f("alpha", 1.702))}));
}

/// alpha * op(A) @ op(B), transposing the last two dims.
void buildFusedMatMul(Node &n) {
  if (n.i("transBatchA", 0) || n.i("transBatchB", 0))
    return n.unsupported("FusedMatMul with transposed batches is not supported");
  mlir::Value product = n.one("matmul", {n.in(0), n.in(1)}, n.pick("transA>trans_a transB>trans_b"));
  double alpha = n.f("alpha", 1);
  n.out(0, alpha == 1 ? product : n.binary("mul", product, n.scalarLike(product, alpha)));
}

/// Result 0 is norm(x + skip + bias), result 3 the sum itself; 1 and 2 are for training.
void buildSkipNorm(Node &n) {
  bool rms = n.row().kind == "rms";
  size_t biasAt = rms ? 3 : 4;
  mlir::Value sum = n.binary("add", n.in(0), n.in(1));
  if (n.has(biasAt))
    sum = n.binary("add", sum, n.in(biasAt));
  if (n.wants(1) || n.wants(2))
    return n.unsupported("the training results of skip normalisation are not supported");
  Attributes attributes = {n.attr("kind", n.row().kind), n.attr("axis", int64_t(-1)),
                           n.attr("epsilon", n.f("epsilon", 1e-12))};
  n.out(0, n.one("layer_norm", {sum, n.in(2), rms ? mlir::Value() : n.in(3)}, attributes));
  n.out(3, sum);
}
constexpr OpRow skipNorm(std::string_view op, std::string_view kind, uint8_t maxIn) {
  OpRow row = built(op, 1, {3, maxIn, 1, 4}, buildSkipNorm, "epsilon:f");
  row.kind = kind;
  return in(kDomain, row);
}

//===-- Quantised operators: dequantise, compute, quantise. Their operands come as (value, scale, zero point).
//----===//

mlir::Value dequantised(Node &n, size_t at) {
  return n.one("dequantize_linear", {n.in(at), n.in(at + 1), n.in(at + 2)});
}
mlir::Value quantised(Node &n, mlir::Value x, size_t scaleAt) {
  return n.one("quantize_linear", {x, n.in(scaleAt), n.in(scaleAt + 1)});
}
/// The kind in the row says what is computed.
void buildQLinearBinary(Node &n) {
  n.out(0, quantised(n, n.binary(n.row().kind, dequantised(n, 0), dequantised(n, 3)), 6));
}
void buildQLinearUnary(Node &n) {
  Attributes attributes = n.pick("alpha");
  attributes.push_back(n.attr("kind", n.row().kind));
  n.out(0, quantised(n, n.one("unary", {dequantised(n, 0)}, attributes), 3));
}
void buildQLinearConcat(Node &n) {
  if (n.numInputs() % 3 != 2)
    return n.invalid("has " + std::to_string(n.numInputs()) + " operands; expected 2 and 3 per value");
  Values parts;
  for (size_t i = 2; i < n.numInputs(); i += 3)
    parts.push_back(dequantised(n, i));
  n.out(0, quantised(n, n.one("concat", parts, n.pick("axis")), 0));
}
void buildQLinearGlobalAveragePool(Node &n) {
  auto rank = n.rank(n.in(0));
  if (!rank || n.i("channels_last", 0))
    return n.unsupported("QLinearGlobalAveragePool needs an input of known rank with channels first");
  std::vector<int64_t> axes;
  for (int64_t axis = 2; axis < *rank; ++axis)
    axes.push_back(axis);
  n.out(0, quantised(n, n.reduce("mean", dequantised(n, 0), axes), 3));
}
constexpr OpRow qlinear(std::string_view op, Arity arity, void (*build)(Node &),
                        std::string_view attributes = "", std::string_view kind = "") {
  OpRow row = built(op, 1, arity, build, attributes);
  row.kind = kind;
  return in(kDomain, row);
}

/// f32 from an integer product: product * (scaleA * scaleB) + bias.
mlir::Value scaledProduct(Node &n, const Values &operands, mlir::Value scaleA, mlir::Value scaleB,
                          mlir::Value bias) {
  mlir::Value product = n.cast(n.one("matmul_integer", operands), DType::F32);
  product = n.binary("mul", product, n.binary("mul", scaleA, scaleB));
  return bias ? n.binary("add", product, bias) : product;
}
/// A f32, B, scaleB, zeroB?, bias?
void buildDynamicQuantizeMatMul(Node &n) {
  Values a = n.emit("dynamic_quantize_linear", {n.in(0)}, {}, 3);
  n.out(0, scaledProduct(n, {a[0], n.in(1), a.size() > 2 ? a[2] : mlir::Value(), n.in(3)},
                         a.size() > 1 ? a[1] : mlir::Value(), n.in(2), n.in(4)));
}
/// A, B, scaleA, scaleB, zeroA?, zeroB?, bias?
void buildMatMulIntegerToFloat(Node &n) {
  n.out(0, scaledProduct(n, {n.in(0), n.in(1), n.in(4), n.in(5)}, n.in(2), n.in(3), n.in(6)));
}

constexpr OpRow rows[] = {
    in(kDomain, built("Gelu", 1, {}, buildGelu)),
    in(kDomain, built("FastGelu", 1, {1, 2}, buildFastGelu)),
    in(kDomain, built("BiasGelu", 1, {2, 2}, buildBiasGelu)),
    in(kDomain, built("QuickGelu", 1, {}, buildQuickGelu, "alpha:f")),
    in(kDomain, built("FusedMatMul", 1, {2, 2}, buildFusedMatMul,
                      "alpha:f transA:i transB:i transBatchA:i transBatchB:i")),
    in(kDomain, direct("QuantizeLinear", 1, {2, 3}, "quantize_linear", "axis:i block_size:i")),
    in(kDomain, direct("DequantizeLinear", 1, {2, 3}, "dequantize_linear", "axis:i block_size:i")),
    skipNorm("SkipLayerNormalization", "layer", 5),
    skipNorm("SkipSimplifiedLayerNormalization", "rms", 4),
    qlinear("QLinearAdd", {8, 8}, buildQLinearBinary, "", "add"),
    qlinear("QLinearMul", {8, 8}, buildQLinearBinary, "", "mul"),
    qlinear("QLinearSigmoid", {4, 5}, buildQLinearUnary, "", "sigmoid"),
    qlinear("QLinearLeakyRelu", {4, 5}, buildQLinearUnary, "alpha:f", "leaky_relu"),
    qlinear("QLinearConcat", {5, kVariadic}, buildQLinearConcat, "axis:i!"),
    qlinear("QLinearGlobalAveragePool", {4, 5}, buildQLinearGlobalAveragePool, "channels_last:i"),
    qlinear("DynamicQuantizeMatMul", {3, 5}, buildDynamicQuantizeMatMul),
    qlinear("MatMulIntegerToFloat", {4, 7}, buildMatMulIntegerToFloat),
    // Contrib operators that onnxruntime keeps in the standard domain.
    direct("SimplifiedLayerNormalization", 1, {2, 2, 1, 2}, "layer_norm", "axis:i epsilon:f stash_type:i",
           "rms"),
};

} // namespace

OpRows microsoftRows() { return rows; }

} // namespace dspark::onnx
