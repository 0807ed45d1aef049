// ai.onnx.ml: linear models and support vector machines, as products with constants. Where the documentation
// of the operators leaves a form open, onnxruntime's is taken.
#include "frontends/onnx/ops/MlScores.h"
#include <algorithm>

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

/// Probabilities of classes [N, C]: each decision through its sigmoid, then coupled.
mlir::Value probabilities(Node &n, mlir::Value decisions, size_t classes) {
  mlir::Value scaled = n.binary("mul", decisions, n.floatList(n.floats("prob_a")));
  mlir::Value first =
      n.unary("sigmoid", n.unary("neg", n.binary("add", scaled, n.floatList(n.floats("prob_b")))));
  first = n.binary("min", n.binary("max", first, n.scalarLike(first, 1e-7)), n.scalarLike(first, 1 - 1e-7));
  return n.one("pairwise_probability", {first}, {n.attr("classes", int64_t(classes))});
}

/// The two columns of a single decision s: -s and s, or what becomes of them.
mlir::Value bothSides(Node &n, mlir::Value decision) {
  std::string transform = n.s("post_transform", "NONE");
  mlir::Value other = n.unary("neg", decision);
  if (transform == "SOFTMAX" || transform == "SOFTMAX_ZERO" || transform == "PROBIT") {
    n.unsupported("SVMClassifier of two classes with post_transform " + transform + " is not supported");
    return {};
  }
  mlir::Value both = n.one("concat", {other, decision}, {n.attr("axis", int64_t(1))});
  return transform == "LOGISTIC" ? n.unary("sigmoid", both) : both;
}

/// One row of weights per class. Of two classes the second wins where any score is above 0 (at least 1/2 if
/// no weight is negative).
void buildLinearSvm(Node &n, mlir::Value names, size_t labels) {
  std::vector<double> weights = n.floats("coefficients"), rho = n.floats("rho");
  if (!isMatrix(n, "coefficients", weights.size(), int64_t(labels)))
    return;
  if (rho.empty())
    return n.invalid("rho is empty; expected a number");
  mlir::Value scores = affine(n, asFloat(n, n.in(0)), weights, int64_t(labels), {rho[0]});
  mlir::Value places = largest(n, scores);
  if (labels == 2) {
    bool hasNegative = std::any_of(weights.begin(), weights.end(), [](double w) { return w < 0; });
    mlir::Value top = n.one("squeeze", {n.reduce("max", scores, {-1}), n.list({1})});
    mlir::Value isSecond =
        n.compare(hasNegative ? "gt" : "ge", top, n.scalarLike(top, hasNegative ? 0 : 0.5));
    places = n.one("select", {isSecond, n.scalarLike(places, 1), places});
  }
  n.out(0, labelAt(n, names, places));
  n.out(1, postTransform(n, scores));
}

/// Pairs times vectors: the weights of decisions are a dense matrix.
constexpr int64_t kMostWeights = 1 << 26;

/// What does not fit together among the attributes of support vectors, or an empty text.
std::string svmFault(Node &n, size_t classes, size_t pairs, int64_t count) {
  auto expected = [](const char *name, size_t found, size_t wanted) {
    return std::string(name) + " has " + std::to_string(found) + " numbers; expected " +
           std::to_string(wanted);
  };
  size_t labels = std::max(n.ints("classlabels_ints").size(), n.strings("classlabels_strings").size());
  if (labels != classes)
    return std::to_string(labels) + " class labels for " + std::to_string(classes) + " classes of vectors";
  if (size_t found = n.floats("coefficients").size(); found != (classes - 1) * size_t(count))
    return expected("coefficients", found, (classes - 1) * size_t(count));
  if (size_t found = n.floats("rho").size(); found != pairs)
    return expected("rho", found, pairs);
  for (const char *name : {"prob_a", "prob_b"})
    if (size_t found = n.floats(name).size(); !n.floats("prob_a").empty() && found != pairs)
      return expected(name, found, pairs);
  return {};
}

void buildSvmClassifier(Node &n) {
  std::vector<double> vectors = n.floats("support_vectors");
  std::vector<int64_t> perClass = n.ints("vectors_per_class");
  Kernel kernel(n);
  mlir::Value names = classLabels(n, "classlabels_ints", "classlabels_strings");
  if (n.failed())
    return;
  int64_t count = 0;
  for (int64_t some : perClass) {
    if (some < 0 || some > int64_t(vectors.size()))
      return n.invalid("vectors_per_class has " + std::to_string(some) + "; expected 0 to " +
                       std::to_string(vectors.size()));
    count += some;
  }
  if (count == 0)
    return buildLinearSvm(
        n, names, std::max(n.ints("classlabels_ints").size(), n.strings("classlabels_strings").size()));
  size_t classes = perClass.size(), pairs = classes * (classes - 1) / 2;
  if (pairs == 0)
    return n.unsupported("SVMClassifier of one class is not supported");
  if (pairs * size_t(count) > size_t(kMostWeights))
    return n.unsupported("SVMClassifier with " + std::to_string(pairs) + " pairs of classes and " +
                         std::to_string(count) + " vectors is not supported");
  if (!isMatrix(n, "support_vectors", vectors.size(), count))
    return;
  if (std::string fault = svmFault(n, classes, pairs, count); !fault.empty())
    return n.invalid(fault);
  mlir::Value similar = kernel.apply(n, asFloat(n, n.in(0)), vectors, count);
  mlir::Value decisions = affine(n, similar, pairWeights(perClass, n.floats("coefficients"), size_t(count)),
                                 int64_t(pairs), n.floats("rho"));
  n.out(0, labelAt(n, names, largest(n, votes(n, decisions, classes))));
  if (!n.floats("prob_a").empty())
    n.out(1, postTransform(n, probabilities(n, decisions, classes)));
  else if (classes > 2)
    n.out(1, postTransform(n, decisions));
  else if (mlir::Value both = bothSides(n, decisions))
    n.out(1, both);
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
