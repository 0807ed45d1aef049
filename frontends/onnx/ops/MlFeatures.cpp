// ai.onnx.ml: what is done to features before a predictor sees them.
#include "frontends/onnx/ops/MlScores.h"
#include <cmath>

namespace dspark::onnx {
namespace {

constexpr std::string_view kDomain = "ai.onnx.ml";

mlir::Value asFloat(Node &n, mlir::Value x) { return n.type(x) == DType::F32 ? x : n.cast(x, DType::F32); }

/// (x - offset) * scale, each one number or one per feature.
void buildScaler(Node &n) {
  std::vector<double> offset = n.floats("offset"), scale = n.floats("scale");
  if (offset.empty() || scale.empty())
    return n.invalid("offset and scale have " + std::to_string(offset.size()) + " and " +
                     std::to_string(scale.size()) + " numbers; expected 1 or as many as there are features");
  mlir::Value x = asFloat(n, n.in(0));
  n.out(0, n.binary("mul", n.binary("sub", x, n.floatList(offset)), n.floatList(scale)));
}

/// Rows of [N, C] (or the whole of [C]) divided by their largest value, sum of sizes, or length; by 1 where
/// that is 0.
void buildNormalizer(Node &n) {
  std::string norm = n.s("norm", "MAX");
  mlir::Value x = asFloat(n, n.in(0)), size;
  if (norm == "MAX")
    size = n.reduce("max", x, {-1});
  else if (norm == "L1")
    size = n.reduce("l1", x, {-1});
  else if (norm == "L2")
    size = n.reduce("l2", x, {-1});
  else
    return n.invalid("norm is '" + norm + "'; expected MAX, L1 or L2");
  mlir::Value isZero = n.compare("eq", size, n.scalarLike(x, 0));
  n.out(0, n.binary("div", x, n.one("select", {isZero, n.scalarLike(x, 1), size})));
}

/// Values equal to replaced_value (NaN equals NaN) become the imputed one of their feature.
void buildImputer(Node &n) {
  mlir::Value x = n.in(0), imputed;
  bool isFloat = n.hasAttribute("imputed_value_floats");
  if (isFloat == n.hasAttribute("imputed_value_int64s"))
    return n.invalid("exactly one of imputed_value_floats and imputed_value_int64s is expected");
  double missing = isFloat ? n.f("replaced_value_float", 0) : double(n.i("replaced_value_int64", 0));
  imputed = isFloat ? n.floatList(n.floats("imputed_value_floats")) : n.list(n.ints("imputed_value_int64s"));
  if (n.type(x) != (isFloat ? DType::F32 : DType::I64))
    return n.unsupported("Imputer whose values and operand differ in type is not supported");
  mlir::Value isMissing = std::isnan(missing) ? n.unary("isnan", x)
                          : isFloat ? n.compare("eq", x, n.scalarLike(x, missing))
                                    : n.compare("eq", x, n.intScalar(n.i("replaced_value_int64", 0)));
  n.out(0, n.one("select", {isMissing, imputed, x}));
}

/// [...] -> [..., categories] of 0 and 1. A value that is no category gives zeros, whatever attribute zeros
/// says.
void buildOneHotEncoder(Node &n) {
  mlir::Value labels = classLabels(n, "cats_int64s", "cats_strings");
  if (!labels)
    return;
  mlir::Value x = n.in(0);
  if (n.type(labels) == DType::I64 && n.type(x) != DType::I64)
    x = n.cast(x, DType::I64);
  n.out(0, n.cast(n.compare("eq", n.one("unsqueeze", {x, n.list({-1})}), labels), DType::F32));
}

/// Rows of all operands side by side, each cut or padded with 0 to its number of columns.
void buildFeatureVectorizer(Node &n) {
  std::vector<int64_t> columns = n.ints("inputdimensions");
  if (columns.size() != n.numInputs())
    return n.invalid("inputdimensions has " + std::to_string(columns.size()) + " numbers for " +
                     std::to_string(n.numInputs()) + " operands");
  Values parts;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] < 0)
      return n.invalid("inputdimensions has " + std::to_string(columns[i]) + "; expected at least 0");
    mlir::Value x = asFloat(n, n.in(i));
    if (n.rank(x) == 1) // one row
      x = n.one("unsqueeze", {x, n.list({0})});
    TensorInfo info = n.info(x);
    if (!info.hasRank || info.rank() != 2)
      return n.unsupported("FeatureVectorizer of operands of another rank than 1 and 2 is not supported");
    if (!info.dims[1].is(columns[i])) { // as many zeros as may be missing, then what is wanted of it
      x = n.one("pad", {x, n.list({0, 0, 0, columns[i]})});
      x = n.one("slice", {x, n.list({0}), n.list({columns[i]}), n.list({1})});
    }
    parts.push_back(x);
  }
  n.out(0, n.one("concat", parts, {n.attr("axis", int64_t(1))}));
}

/// Strings to the integers of the same place, or the other way round.
void buildCategoryMapper(Node &n) {
  std::vector<std::string> names = n.strings("cats_strings");
  std::vector<int64_t> numbers = n.ints("cats_int64s");
  if (names.size() != numbers.size() || names.empty())
    return n.invalid("cats_strings and cats_int64s have " + std::to_string(names.size()) + " and " +
                     std::to_string(numbers.size()) + " entries; expected as many");
  mlir::Value list = n.stringList(names);
  if (n.type(n.in(0)) == DType::String)
    n.out(0, n.one("label_encoder", {n.in(0), list},
                   {n.attr("values_int64s", numbers), n.attr("default_int64", n.i("default_int64", -1))}));
  else
    n.out(0, n.one("label_encoder", {n.in(0), {}, list, n.stringScalar(n.s("default_string", "_Unused"))},
                   {n.attr("keys_int64s", numbers)}));
}

constexpr OpRow rows[] = {
    in(kDomain, built("Scaler", 1, {}, buildScaler, "offset:F scale:F")),
    in(kDomain, built("Normalizer", 1, {}, buildNormalizer, "norm:s")),
    in(kDomain, built("Imputer", 1, {}, buildImputer,
                      "imputed_value_floats:F imputed_value_int64s:I replaced_value_float:f "
                      "replaced_value_int64:i")),
    in(kDomain, built("OneHotEncoder", 1, {}, buildOneHotEncoder, "cats_int64s:I cats_strings:S zeros:i")),
    in(kDomain, built("FeatureVectorizer", 1, {1, kVariadic}, buildFeatureVectorizer, "inputdimensions:I")),
    in(kDomain, built("CategoryMapper", 1, {}, buildCategoryMapper,
                      "cats_int64s:I cats_strings:S default_int64:i default_string:s")),
};

} // namespace

OpRows mlFeatureRows() { return rows; }

} // namespace dspark::onnx
