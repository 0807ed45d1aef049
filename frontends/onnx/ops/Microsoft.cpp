// Operators of com.microsoft that have an equal in the catalogue.
#include "frontends/onnx/Node.h"
#include "frontends/onnx/ops/MatMulNBits.h"

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

constexpr OpRow rows[] = {
    in(kDomain, built("Gelu", 1, {}, buildGelu)),
    in(kDomain, built("FastGelu", 1, {1, 2}, buildFastGelu)),
    in(kDomain, built("BiasGelu", 1, {2, 2}, buildBiasGelu)),
    in(kDomain, built("QuickGelu", 1, {}, buildQuickGelu, "alpha:f")),
    in(kDomain, built("FusedMatMul", 1, {2, 2}, buildFusedMatMul,
                      "alpha:f transA:i transB:i transBatchA:i transBatchB:i")),
    skipNorm("SkipLayerNormalization", "layer", 5),
    skipNorm("SkipSimplifiedLayerNormalization", "rms", 4),
    in(kDomain, built("MatMulNBits", 1, {3, 6}, buildMatMulNBits,
                      "K:i! N:i! bits:i block_size:i! accuracy_level:i weight_prepacked:i")),
    // Contrib operators that onnxruntime keeps in the standard domain.
    direct("SimplifiedLayerNormalization", 1, {2, 2, 1, 2}, "layer_norm", "axis:i epsilon:f stash_type:i",
           "rms"),
};

} // namespace

OpRows microsoftRows() { return rows; }

} // namespace dspark::onnx
