// ai.onnx.ml: encoders, maps and trees.
#include "frontends/onnx/GraphImporter.h"
#include <numeric>

namespace dspark::onnx {
namespace {

constexpr std::string_view kDomain = "ai.onnx.ml";

/// A list of keys or values that is strings, as an operand: from attribute <side>_strings, or from
/// <side>_tensor. Null if it is numbers.
mlir::Value stringSide(Node &n, const std::string &side) {
  if (n.hasAttribute(side + "_strings"))
    return n.stringList(n.strings(side + "_strings"));
  const auto *tensor = n.attribute(side + "_tensor");
  if (!tensor || tensor->t().data_type() != ::onnx::TensorProto::STRING)
    return {};
  return n.stringList({tensor->t().string_data().begin(), tensor->t().string_data().end()});
}

/// Numbers stay attributes. The result has the type of the values, which a list of attributes does not show.
void buildLabelEncoder(Node &n) {
  mlir::Value keys = stringSide(n, "keys"), values = stringSide(n, "values"), otherwise;
  std::string numbers = "keys_int64s keys_floats values_int64s values_floats default_int64 default_float ";
  numbers += keys ? "" : "keys_tensor ";
  numbers += values ? "" : "values_tensor default_tensor";
  Attributes attributes = n.pick(numbers);
  if (const auto *tensor = n.attribute("values_tensor"); tensor && !values)
    attributes.push_back(n.attr("values_dtype", int64_t(tensor->t().data_type())));
  if (const auto *tensor = n.attribute("default_tensor");
      values && tensor && tensor->t().string_data_size() == 1)
    otherwise = n.stringScalar(tensor->t().string_data(0));
  else if (values)
    otherwise = n.stringScalar(n.s("default_string", "_Unused"));
  n.out(0, n.one("label_encoder", {n.in(0), keys, values, otherwise}, attributes));
}

/// Opset 1: strings to their places in classes_strings, or the other way round.
void buildLabelEncoder1(Node &n) {
  std::vector<std::string> classes = n.strings("classes_strings");
  std::vector<int64_t> places(classes.size());
  std::iota(places.begin(), places.end(), 0);
  mlir::Value names = n.stringList(classes);
  bool fromStrings = n.type(n.in(0)) == DType::String;
  if (fromStrings)
    n.out(0, n.one("label_encoder", {n.in(0), names},
                   {n.attr("values_int64s", places), n.attr("default_int64", n.i("default_int64", -1))}));
  else
    n.out(0, n.one("label_encoder", {n.in(0), {}, names, n.stringScalar(n.s("default_string", "_Unused"))},
                   {n.attr("keys_int64s", places)}));
}

// --- maps: the tensors of keys and of values ---

/// The labels in attribute <name>_int64s or <name>_strings; null, with the node refused, if there are none.
mlir::Value labels(Node &n, const std::string &ints, const std::string &strings) {
  if (n.hasAttribute(strings))
    return n.stringList(n.strings(strings));
  if (n.hasAttribute(ints))
    return n.list(n.ints(ints));
  n.invalid("attribute '" + ints + "' or '" + strings + "' is missing");
  return {};
}

mlir::Type column(mlir::Value values) {
  return mlir::RankedTensorType::get({mlir::ShapedType::kDynamic},
                                     mlir::cast<mlir::TensorType>(values.getType()).getElementType());
}

/// A sequence of maps from the class labels to the scores in a row.
void buildZipMap(Node &n) {
  mlir::Value keys = labels(n, "classlabels_int64s", "classlabels_strings");
  if (!keys || !mlir::isa<mlir::TensorType>(n.in(0).getType()))
    return n.invalid("operand 0 is " + typeText(n.in(0).getType()) + "; expected a tensor");
  mlir::Type map = ir::MapType::get(n.loc().getContext(), column(keys), column(n.in(0)));
  n.out(0, n.listOp("rows", {n.in(0), keys}, ir::SequenceType::get(n.loc().getContext(), map)));
}

/// Keys and values of operand 0; nothing, with the node refused, if that is no map.
std::optional<std::pair<mlir::Value, mlir::Value>> entries(Node &n) {
  auto map = mlir::dyn_cast<ir::MapType>(n.in(0).getType());
  if (!map) {
    n.invalid("operand 0 is " + typeText(n.in(0).getType()) + "; expected a map");
    return std::nullopt;
  }
  mlir::Value keys = n.listOp("at", {n.in(0), n.intScalar(0)}, map.getKeys());
  return std::pair(keys, n.listOp("at", {n.in(0), n.intScalar(1)}, map.getValues()));
}

/// [1, vocabulary]: the value of each key of the vocabulary, 0 where the map lacks it.
void buildDictVectorizer(Node &n) {
  auto map = entries(n);
  mlir::Value vocabulary = map ? labels(n, "int64_vocabulary", "string_vocabulary") : mlir::Value();
  if (!vocabulary)
    return;
  if (n.type(map->second) == DType::String)
    return n.unsupported("DictVectorizer of strings as values is not supported");
  mlir::Value isEntry = n.compare("eq", n.one("unsqueeze", {vocabulary, n.list({1})}), map->first);
  mlir::Value values = n.one("select", {isEntry, map->second, n.scalarLike(map->second, 0)});
  n.out(0, n.one("unsqueeze", {n.reduce("sum", values, {1}, false), n.list({0})}));
}

/// [1, n]: the values in the order of their keys, or [1, max_map]: each at its key.
void buildCastMap(Node &n) {
  auto map = entries(n);
  if (!map)
    return;
  std::string to = n.s("cast_to", "TO_FLOAT"), form = n.s("map_form", "DENSE");
  DType type = to == "TO_FLOAT"    ? DType::F32
               : to == "TO_STRING" ? DType::String
               : to == "TO_INT64"  ? DType::I64
                                   : DType::Undefined;
  if (type == DType::Undefined || (form != "DENSE" && form != "SPARSE"))
    return n.invalid("cast_to is '" + to + "' and map_form '" + form +
                     "'; expected TO_FLOAT, TO_STRING or TO_INT64, and DENSE or SPARSE");
  mlir::Value values = n.cast(map->second, type);
  if (form == "DENSE") {
    Values order =
        n.emit("top_k", {map->first, n.one("shape", {map->first})}, {n.attr("largest", int64_t(0))}, 2);
    values = n.failed() ? values : n.one("gather", {values, order[1]});
  } else {
    mlir::Value zero = type == DType::String ? n.stringScalar("") : n.scalar(type, 0);
    mlir::Value empty = n.one("expand", {zero, n.list({n.i("max_map", 1)})});
    values = n.one("scatter_elements", {empty, map->first, values});
  }
  n.out(0, n.one("unsqueeze", {values, n.list({0})}));
}

void buildArrayFeatureExtractor(Node &n) {
  n.out(0,
        n.one("gather", {n.in(0), n.one("reshape", {n.in(1), n.list({-1})})}, {n.attr("axis", int64_t(-1))}));
}

constexpr OpRow rows[] = {
    in(kDomain, direct("Binarizer", 1, {}, "binarizer", "threshold:f")),
    in(kDomain, built("LabelEncoder", 1, {}, buildLabelEncoder1,
                      "classes_strings:S! default_int64:i default_string:s")),
    in(kDomain,
       built("LabelEncoder", 2, {}, buildLabelEncoder,
             "default_float:f default_int64:i default_string:s default_tensor:t keys_floats:F keys_int64s:I "
             "keys_strings:S keys_tensor:t values_floats:F values_int64s:I values_strings:S "
             "values_tensor:t")),
    in(kDomain, built("ZipMap", 1, {}, buildZipMap, "classlabels_int64s:I classlabels_strings:S")),
    in(kDomain,
       built("DictVectorizer", 1, {}, buildDictVectorizer, "int64_vocabulary:I string_vocabulary:S")),
    in(kDomain, built("CastMap", 1, {}, buildCastMap, "cast_to:s map_form:s max_map:i")),
    in(kDomain, built("ArrayFeatureExtractor", 1, {2, 2}, buildArrayFeatureExtractor)),
    in(kDomain,
       direct("TreeEnsemble", 5, {}, "tree_ensemble",
              "aggregate_function:i leaf_targetids:I! leaf_weights:t! membership_values:t n_targets:i "
              "nodes_falseleafs:I! nodes_falsenodeids:I! nodes_featureids:I! nodes_hitrates>:t "
              "nodes_missing_value_tracks_true:I nodes_modes:t! nodes_splits:t! nodes_trueleafs:I! "
              "nodes_truenodeids:I! post_transform:i tree_roots:I!")),
};

} // namespace

OpRows mlRows() { return rows; }

} // namespace dspark::onnx
