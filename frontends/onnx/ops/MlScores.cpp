#include "frontends/onnx/ops/MlScores.h"
#include <numbers>

namespace dspark::onnx {
namespace {

/// Winitzki's approximation of the inverse error function, which ai.onnx.ml's PROBIT is defined by.
mlir::Value probit(Node &n, mlir::Value p) {
  auto number = [&](double value) { return n.scalarLike(p, value); };
  mlir::Value x = n.binary("sub", n.binary("mul", p, number(2)), number(1));
  mlir::Value log = n.unary("log", n.binary("sub", number(1), n.binary("mul", x, x)));
  mlir::Value v = n.binary("add", n.binary("mul", log, number(0.5)), number(2 / (std::numbers::pi * 0.147)));
  mlir::Value inner =
      n.unary("sqrt", n.binary("sub", n.binary("mul", v, v), n.binary("div", log, number(0.147))));
  mlir::Value size = n.unary("sqrt", n.binary("sub", inner, v));
  return n.binary("mul", n.binary("mul", n.unary("sign", x), size), number(std::numbers::sqrt2));
}

/// A softmax in which values of nearly 0 keep their sign of absence: v * exp(-max) instead of exp(v - max).
mlir::Value softmaxZero(Node &n, mlir::Value x) {
  mlir::Value top = n.reduce("max", x, {-1});
  mlir::Value counts = n.compare("gt", n.unary("abs", x), n.scalarLike(x, 1e-7));
  mlir::Value terms = n.one("select", {counts, n.unary("exp", n.binary("sub", x, top)),
                                       n.binary("mul", x, n.unary("exp", n.unary("neg", top)))});
  mlir::Value total = n.reduce("sum", terms, {-1});
  mlir::Value isEmpty = n.compare("eq", total, n.scalarLike(x, 0));
  return n.one("select", {isEmpty, n.scalarLike(x, 0.5), n.binary("div", terms, total)});
}

} // namespace

mlir::Value postTransform(Node &n, mlir::Value scores) {
  std::string name = n.s("post_transform", "NONE");
  if (name == "NONE")
    return scores;
  if (name == "SOFTMAX")
    return n.one("softmax", {scores}, {n.attr("kind", "softmax"), n.attr("axis", int64_t(-1))});
  if (name == "LOGISTIC")
    return n.unary("sigmoid", scores);
  if (name == "SOFTMAX_ZERO")
    return softmaxZero(n, scores);
  if (name == "PROBIT")
    return probit(n, scores);
  n.invalid("post_transform is '" + name + "'; expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT");
  return {};
}

mlir::Value classLabels(Node &n, const std::string &ints, const std::string &strings) {
  if (n.hasAttribute(strings) && !n.strings(strings).empty())
    return n.stringList(n.strings(strings));
  if (n.hasAttribute(ints) && !n.ints(ints).empty())
    return n.list(n.ints(ints));
  n.invalid("attribute '" + ints + "' or '" + strings + "' is missing");
  return {};
}

mlir::Value labelAt(Node &n, mlir::Value labels, mlir::Value places) {
  return n.one("gather", {labels, places});
}

mlir::Value largest(Node &n, mlir::Value scores) {
  return n.one("arg_reduce", {scores},
               {n.attr("kind", "argmax"), n.attr("axis", int64_t(-1)), n.attr("keepdims", int64_t(0))});
}

mlir::Value matrix(Node &n, const std::vector<double> &values, int64_t rows) {
  return n.one("reshape", {n.floatList(values), n.list({rows, int64_t(values.size()) / rows})});
}

} // namespace dspark::onnx
