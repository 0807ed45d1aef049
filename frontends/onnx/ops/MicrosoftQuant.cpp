// Quantised operators of com.microsoft. Their operands come as (value, scale, zero point), and they
// dequantise, compute and quantise; the compiler makes integer kernels of that as it does of models that
// spell it out.
#include "frontends/onnx/Node.h"
#include "frontends/onnx/ops/Legacy.h"

namespace dspark::onnx {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

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
  if (!rank)
    return n.unsupported("QLinearGlobalAveragePool needs an input of known rank");
  int64_t first = n.i("channels_last", 0) ? 1 : 2;
  std::vector<int64_t> axes;
  for (int64_t axis = first; axis < *rank - 2 + first; ++axis)
    axes.push_back(axis);
  n.out(0, quantised(n, n.reduce("mean", dequantised(n, 0), axes), 3));
}
void buildQLinearAveragePool(Node &n) {
  Attributes attributes = n.pick("auto_pad ceil_mode count_include_pad kernel_shape pads strides");
  attributes.push_back(n.attr("kind", "average"));
  if (n.i("channels_last", 0))
    attributes.push_back(n.attr("layout", "nhwc"));
  n.out(0, quantised(n, n.one("pool", {dequantised(n, 0)}, attributes), 3));
}
/// The attribute opset says which Softmax is meant; before 13 it is over all axes from `axis` on.
void buildQLinearSoftmax(Node &n) {
  mlir::Value x = dequantised(n, 0);
  bool isLegacy = n.i("opset", 13) < 13;
  int64_t axis = n.i("axis", isLegacy ? 1 : -1);
  auto along = [&](mlir::Value x, int64_t axis) {
    return n.one("softmax", {x}, {n.attr("kind", "softmax"), n.attr("axis", axis)});
  };
  auto rank = n.rank(x);
  bool isPlain = !isLegacy || axis == -1 || (rank && axis == *rank - 1);
  n.out(0, quantised(n,
                     isPlain ? along(x, axis)
                             : onFlattened(n, x, axis, [&](mlir::Value flat) { return along(flat, 1); }),
                     3));
}
/// condition, then both values, then the result's scale and zero point.
void buildQLinearWhere(Node &n) {
  n.out(0, quantised(n, n.one("select", {n.in(0), dequantised(n, 1), dequantised(n, 4)}), 7));
}
/// alpha * A @ B + C with C (i32) in units of the product's scale; f32 without a scale of the result.
void buildQGemm(Node &n) {
  mlir::Value a = n.in(0), aScale = n.in(1), c = n.in(6);
  if (n.i("transA", 0))
    a = n.one("transpose", {a}, {n.attr("perm", std::vector<int64_t>{1, 0})});
  double alpha = n.f("alpha", 1);
  if (alpha != 1) // C's unit has it too
    aScale = n.binary("mul", aScale, n.scalarLike(aScale, alpha));
  Attributes attributes = n.pick("transB>trans_b");
  bool isRow = c && n.rank(c) == 1 && n.info(c).dims[0].isConst() && !n.info(c).dims[0].is(1);
  if (!c || isRow)
    return n.out(0, n.one("qlinear_matmul",
                          {a, aScale, n.in(2), n.in(3), n.in(4), n.in(5), n.in(7), n.in(8), c}, attributes));
  mlir::Value product = n.one("qlinear_matmul", {a, aScale, n.in(2), n.in(3), n.in(4), n.in(5)}, attributes);
  mlir::Value added = n.binary("mul", n.cast(c, DType::F32), n.binary("mul", aScale, n.in(4)));
  product = n.binary("add", product, added);
  n.out(0, n.has(7) ? quantised(n, product, 7) : product);
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

/// X, W, R, B?, lengths?, h?, c?, P?, then scale and zero point of W and of R.
void buildDynamicQuantizeLstm(Node &n) {
  Attributes attributes = n.pick("activation_alpha:F activation_beta:F activations:S clip:f direction:s "
                                 "hidden_size:i input_forget:i");
  if (!n.has(8) || !n.has(10))
    return n.invalid("needs the scales of W and R");
  Values operands;
  for (size_t i = 0; i < 12; ++i)
    operands.push_back(n.in(i));
  n.outs(n.emit("dynamic_quantize_lstm", operands, attributes, n.numOutputs()));
}

constexpr OpRow rows[] = {
    in(kDomain, direct("QuantizeLinear", 1, {2, 3}, "quantize_linear", "axis:i block_size:i")),
    in(kDomain, direct("DequantizeLinear", 1, {2, 3}, "dequantize_linear", "axis:i block_size:i")),
    qlinear("QLinearAdd", {2, 8}, buildQLinearBinary, "", "add"),
    qlinear("QLinearMul", {2, 8}, buildQLinearBinary, "", "mul"),
    qlinear("QLinearSigmoid", {2, 5}, buildQLinearUnary, "", "sigmoid"),
    qlinear("QLinearLeakyRelu", {2, 5}, buildQLinearUnary, "alpha:f", "leaky_relu"),
    qlinear("QLinearConcat", {5, kVariadic}, buildQLinearConcat, "axis:i!"),
    qlinear("QLinearAveragePool", {4, 5}, buildQLinearAveragePool,
            "auto_pad:s ceil_mode:i channels_last:i count_include_pad:i kernel_shape:I! pads:I strides:I"),
    qlinear("QLinearGlobalAveragePool", {4, 5}, buildQLinearGlobalAveragePool, "channels_last:i"),
    qlinear("QLinearSoftmax", {2, 5}, buildQLinearSoftmax, "axis:i opset:i"),
    qlinear("QLinearWhere", {9, 9}, buildQLinearWhere),
    qlinear("QGemm", {6, 9}, buildQGemm, "alpha:f transA:i transB:i"),
    qlinear("DynamicQuantizeLSTM", {3, 12, 1, 3}, buildDynamicQuantizeLstm,
            "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i "
            "input_forget:i"),
    qlinear("DynamicQuantizeMatMul", {3, 5}, buildDynamicQuantizeMatMul),
    qlinear("MatMulIntegerToFloat", {4, 7}, buildMatMulIntegerToFloat),
};

} // namespace

OpRows microsoftQuantRows() { return rows; }

} // namespace dspark::onnx
