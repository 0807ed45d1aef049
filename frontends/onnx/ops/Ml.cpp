// ai.onnx.ml on numbers: encoders and trees.
#include "frontends/onnx/GraphImporter.h"

namespace dspark::onnx {
namespace {

constexpr std::string_view kDomain = "ai.onnx.ml";

/// Without strings on either side. The result has the type of the values, which a list of attributes does not
/// show.
void buildLabelEncoder(Node &n) {
  for (const char *name : {"keys_strings", "values_strings"})
    if (n.hasAttribute(name))
      return n.unsupported("string tensors are not supported yet");
  Attributes attributes =
      n.pick("keys_int64s keys_floats keys_tensor values_int64s values_floats values_tensor "
             "default_int64 default_float default_tensor");
  if (const auto *values = n.attribute("values_tensor"))
    attributes.push_back(n.attr("values_dtype", int64_t(values->t().data_type())));
  n.out(0, n.one("label_encoder", {n.in(0)}, attributes));
}

void buildArrayFeatureExtractor(Node &n) {
  n.out(0,
        n.one("gather", {n.in(0), n.one("reshape", {n.in(1), n.list({-1})})}, {n.attr("axis", int64_t(-1))}));
}

constexpr OpRow rows[] = {
    in(kDomain, direct("Binarizer", 1, {}, "binarizer", "threshold:f")),
    in(kDomain, refused("LabelEncoder", 1, "string tensors are not supported yet")),
    in(kDomain,
       built("LabelEncoder", 2, {}, buildLabelEncoder,
             "default_float:f default_int64:i default_string:s default_tensor:t keys_floats:F keys_int64s:I "
             "keys_strings:S keys_tensor:t values_floats:F values_int64s:I values_strings:S "
             "values_tensor:t")),
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
