// ai.onnx.ml: linear models and support vector machines, as products with constants. Where the documentation
// of the operators leaves a form open, onnxruntime's is taken.
#include "frontends/onnx/ops/MlScores.h"

namespace dspark::onnx {
namespace {

constexpr std::string_view kDomain = "ai.onnx.ml";

mlir::Value asFloat(Node &n, mlir::Value x) {
  x = n.type(x) == DType::F32 ? x : n.cast(x, DType::F32);
  return n.rank(x) == 1 ? n.one("unsqueeze", {x, n.list({0})}) : x; // one row
}

/// x @ weights' + bias; `weights` [rows, columns] row by row.
mlir::Value affine(Node &n, mlir::Value x, const std::vector<double> &weights, int64_t rows,
                   const std::vector<double> &bias) {
  mlir::Value product = n.one("matmul", {x, matrix(n, weights, rows)}, {n.attr("trans_b", int64_t(1))});
  return bias.empty() ? product : n.binary("add", product, n.floatList(bias));
}

/// `values` are the rows of a matrix; refuses the node if they are not.
bool isMatrix(Node &n, const char *name, size_t values, int64_t rows) {
  bool fits = rows > 0 && values > 0 && values % size_t(rows) == 0;
  if (!fits)
    n.invalid(std::string(name) + " has " + std::to_string(values) + " numbers; expected " +
              std::to_string(rows) + " rows of as many");
  return fits;
}

// --- linear ---

void buildLinearRegressor(Node &n) {
  std::vector<double> weights = n.floats("coefficients"), bias = n.floats("intercepts");
  int64_t targets = n.i("targets", 1);
  if (!isMatrix(n, "coefficients", weights.size(), targets))
    return;
  n.out(0, postTransform(n, affine(n, asFloat(n, n.in(0)), weights, targets, bias)));
}

/// Labels [N] and scores [N, C]. One row of weights for two labels: the second where its score is above 0;
/// the scores are then 1 - s and s.
void buildLinearClassifier(Node &n) {
  std::vector<double> weights = n.floats("coefficients"), bias = n.floats("intercepts");
  size_t labels = std::max(n.ints("classlabels_ints").size(), n.strings("classlabels_strings").size());
  auto classes = int64_t(bias.empty() ? labels : bias.size());
  if (!isMatrix(n, "coefficients", weights.size(), classes))
    return;
  if (labels != size_t(classes) && !(classes == 1 && labels == 2))
    return n.invalid(std::to_string(labels) + " class labels for " + std::to_string(classes) +
                     " rows of weights");
  mlir::Value names = classLabels(n, "classlabels_ints", "classlabels_strings");
  mlir::Value scores = affine(n, asFloat(n, n.in(0)), weights, classes, bias);
  if (classes > 1) {
    n.out(0, labelAt(n, names, largest(n, scores)));
    n.out(1, postTransform(n, scores));
    return;
  }
  mlir::Value isSecond = n.one("squeeze", {n.compare("gt", scores, n.scalarLike(scores, 0)), n.list({1})});
  n.out(0, labelAt(n, names, n.cast(isSecond, DType::I64)));
  mlir::Value second = n.s("post_transform", "NONE") == "LOGISTIC" ? n.unary("sigmoid", scores) : scores;
  n.out(1, n.one("concat", {n.binary("sub", n.scalarLike(second, 1), second), second},
                 {n.attr("axis", int64_t(1))}));
}

// --- support vectors ---

/// What a kernel makes of products x @ v' (for RBF with the squares of lengths).
struct Kernel {
  std::string type;
  double gamma = 0, coef0 = 0, degree = 0;

  explicit Kernel(Node &n) : type(n.s("kernel_type", "LINEAR")) {
    std::vector<double> params = n.floats("kernel_params");
    if (params.size() == 3)
      gamma = params[0], coef0 = params[1], degree = params[2];
    if (type != "LINEAR" && type != "POLY" && type != "RBF" && type != "SIGMOID")
      n.invalid("kernel_type is '" + type + "'; expected LINEAR, POLY, RBF or SIGMOID");
    else if (type != "LINEAR" && params.size() != 3)
      n.invalid("kernel_params has " + std::to_string(params.size()) +
                " numbers; expected gamma, coef0 and degree");
  }

  /// [N, vectors]
  mlir::Value apply(Node &n, mlir::Value x, const std::vector<double> &vectors, int64_t count) const {
    mlir::Value dot = affine(n, x, vectors, count, {});
    auto number = [&](double value) { return n.scalarLike(dot, value); };
    if (type == "LINEAR")
      return dot;
    if (type == "RBF") { // |x - v|^2 = |x|^2 + |v|^2 - 2 x v
      size_t width = vectors.size() / size_t(count);
      std::vector<double> squares(size_t(count), 0.0);
      for (size_t i = 0; i < vectors.size(); ++i)
        squares[i / width] += vectors[i] * vectors[i];
      mlir::Value length = n.reduce("sum", n.binary("mul", x, x), {-1});
      mlir::Value far =
          n.binary("sub", n.binary("add", length, n.floatList(squares)), n.binary("mul", dot, number(2)));
      return n.unary("exp", n.binary("mul", far, number(-gamma)));
    }
    mlir::Value inner = n.binary("add", n.binary("mul", dot, number(gamma)), number(coef0));
    return type == "SIGMOID" ? n.unary("tanh", inner) : n.binary("pow", inner, number(degree));
  }
};

void buildSvmRegressor(Node &n) {
  std::vector<double> weights = n.floats("coefficients"), rho = n.floats("rho");
  int64_t count = n.i("n_supports", 0);
  Kernel kernel(n);
  if (n.failed())
    return;
  if (rho.size() != 1)
    return n.invalid("rho has " + std::to_string(rho.size()) + " numbers; expected 1");
  mlir::Value x = asFloat(n, n.in(0)), y;
  if (count > 0) {
    std::vector<double> vectors = n.floats("support_vectors");
    if (!isMatrix(n, "support_vectors", vectors.size(), count) ||
        !isMatrix(n, "coefficients", weights.size(), 1))
      return;
    if (weights.size() != size_t(count))
      return n.invalid("coefficients has " + std::to_string(weights.size()) +
                       " numbers; expected one per vector");
    y = affine(n, kernel.apply(n, x, vectors, count), weights, 1, rho);
  } else {
    if (!isMatrix(n, "coefficients", weights.size(), 1))
      return;
    y = n.binary("add", kernel.apply(n, x, weights, 1), n.floatList(rho));
  }
  if (n.i("one_class", 0)) {
    mlir::Value isIn = n.compare("gt", y, n.scalarLike(y, 0));
    y = n.one("select", {isIn, n.scalarLike(y, 1), n.scalarLike(y, -1)});
  }
  n.out(0, y);
}

/// Weights of the decisions between each two classes i < j: [vectors, pairs]. The vectors of a class lie
/// together, and row j - 1 of the coefficients is that of class i's vectors against class j.
std::vector<double> pairWeights(const std::vector<int64_t> &perClass, const std::vector<double> &coefficients,
                                size_t vectors) {
  size_t classes = perClass.size(), pairs = classes * (classes - 1) / 2, pair = 0;
  std::vector<size_t> first(classes + 1, 0);
  for (size_t c = 0; c < classes; ++c)
    first[c + 1] = first[c] + size_t(perClass[c]);
  std::vector<double> weights(vectors * pairs, 0.0);
  for (size_t i = 0; i < classes; ++i)
    for (size_t j = i + 1; j < classes; ++j, ++pair) {
      for (size_t v = first[i]; v < first[i + 1]; ++v)
        weights[pair * vectors + v] += coefficients[(j - 1) * vectors + v];
      for (size_t v = first[j]; v < first[j + 1]; ++v)
        weights[pair * vectors + v] += coefficients[i * vectors + v];
    }
  return weights; // row by row of [pairs, vectors]
}

/// Each pair's decision is a vote: for class i where it is above 0, else for j.
mlir::Value votes(Node &n, mlir::Value decisions, size_t classes) {
  std::vector<double> change, start(classes, 0.0);
  for (size_t i = 0; i < classes; ++i)
    for (size_t j = i + 1; j < classes; ++j) {
      start[j] += 1;
      for (size_t c = 0; c < classes; ++c)
        change.push_back(c == i ? 1 : c == j ? -1 : 0);
    }
  mlir::Value isFirst = n.cast(n.compare("gt", decisions, n.scalarLike(decisions, 0)), DType::F32);
  auto pairs = int64_t(classes * (classes - 1) / 2);
  return n.binary("add", n.one("matmul", {isFirst, matrix(n, change, pairs)}), n.floatList(start));
}

void buildSvmClassifier(Node &n) {
  std::vector<double> coefficients = n.floats("coefficients"), rho = n.floats("rho"),
                      vectors = n.floats("support_vectors");
  std::vector<int64_t> perClass = n.ints("vectors_per_class");
  Kernel kernel(n);
  mlir::Value names = classLabels(n, "classlabels_ints", "classlabels_strings");
  if (n.failed())
    return;
  int64_t count = 0;
  for (int64_t some : perClass) {
    if (some < 0)
      return n.invalid("vectors_per_class has " + std::to_string(some) + "; expected at least 0");
    count += some;
  }
  size_t classes = perClass.size(), pairs = classes < 2 ? 0 : classes * (classes - 1) / 2;
  if (!n.floats("prob_a").empty())
    return n.unsupported("SVMClassifier with probabilities is not supported");
  if (pairs == 0 || vectors.empty())
    return n.unsupported("SVMClassifier without support vectors or with one class is not supported");
  if (classes == 2 || n.s("post_transform", "NONE") != "NONE")
    return n.unsupported("SVMClassifier of two classes or with post_transform is not supported");
  if (!isMatrix(n, "support_vectors", vectors.size(), count))
    return;
  if (coefficients.size() != (classes - 1) * size_t(count) || rho.size() != pairs)
    return n.invalid("coefficients and rho have " + std::to_string(coefficients.size()) + " and " +
                     std::to_string(rho.size()) + " numbers; expected " +
                     std::to_string((classes - 1) * size_t(count)) + " and " + std::to_string(pairs));
  mlir::Value similar = kernel.apply(n, asFloat(n, n.in(0)), vectors, count);
  mlir::Value decisions =
      affine(n, similar, pairWeights(perClass, coefficients, size_t(count)), int64_t(pairs), rho);
  n.out(0, labelAt(n, names, largest(n, votes(n, decisions, classes))));
  n.out(1, decisions);
}

constexpr OpRow rows[] = {
    in(kDomain, built("LinearRegressor", 1, {}, buildLinearRegressor,
                      "coefficients:F! intercepts:F post_transform:s targets:i")),
    in(kDomain, built("LinearClassifier", 1, {1, 1, 2, 2}, buildLinearClassifier,
                      "classlabels_ints:I classlabels_strings:S coefficients:F! intercepts:F multi_class:i "
                      "post_transform:s")),
    in(kDomain,
       built("SVMRegressor", 1, {}, buildSvmRegressor,
             "coefficients:F! kernel_params:F kernel_type:s n_supports:i one_class:i post_transform:s "
             "rho:F! support_vectors:F")),
    in(kDomain,
       built("SVMClassifier", 1, {1, 1, 2, 2}, buildSvmClassifier,
             "classlabels_ints:I classlabels_strings:S coefficients:F! kernel_params:F kernel_type:s "
             "post_transform:s prob_a:F prob_b:F rho:F! support_vectors:F vectors_per_class:I")),
};

} // namespace

OpRows mlPredictorRows() { return rows; }

} // namespace dspark::onnx
