// Shape functions of the ml family. Attributes that ONNX gives as tensors (keys_tensor, nodes_splits ...) are
// number lists here. label_encoder has one attribute more, values_dtype: the DType of values_tensor.
#include "kernels/common/expect.h"
#include "kernels/common/families.h"
#include "kernels/ml/ml.h"
#include <algorithm>

namespace dspark {
namespace {

// The entries of the first list of `names` that is given, as integers or as floats.
size_t firstLength(Attrs attrs, std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (size_t length = attrs.ints(name).empty() ? attrs.floats(name).size() : attrs.ints(name).size())
      return length;
  return 0;
}

bool allInRange(InferContext &ctx, const char *name, int64_t low, int64_t high) {
  for (int64_t value : ctx.attrs.ints(name))
    if (value < low || value > high) {
      ctx.error = "attribute " + std::string(name) + " must be in [" + std::to_string(low) + ", " +
                  std::to_string(high) + "], found " + std::to_string(value);
      return false;
    }
  return true;
}

// All integer lists of `names` have `length` entries.
bool sameLengths(InferContext &ctx, std::initializer_list<const char *> names, size_t length) {
  for (const char *name : names)
    if (ctx.attrs.ints(name).size() != length) {
      ctx.error = "attribute " + std::string(name) + " must have " + std::to_string(length) +
                  " integers, found " + std::to_string(ctx.attrs.ints(name).size());
      return false;
    }
  return true;
}

void setLike(TensorInfo &result, const TensorInfo &operand, DType type) {
  result.type = type;
  result.hasRank = operand.hasRank;
  result.dims = operand.dims;
}

} // namespace

// X [...,M,M] -> [...]
InferStatus inferDet(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1) || !expectFloat(ctx, 0) || !expectRank(ctx, 0, 2, kMaxRank))
    return InferStatus::Error;
  ctx.out[0].type = ctx.in[0].type;
  if (!ctx.in[0].hasRank)
    return InferStatus::Ok;
  const std::vector<Dim> &dims = ctx.in[0].dims;
  if (!mergeDims(dims[dims.size() - 1], dims[dims.size() - 2]))
    return ctx.fail("matrices must be square, found " + ctx.in[0].str());
  ctx.out[0] = TensorInfo::make(ctx.in[0].type, std::vector<Dim>(dims.begin(), dims.end() - 2));
  return InferStatus::Ok;
}

// X [...,M,M] -> [...,M,M]
InferStatus inferInverse(InferContext &ctx) {
  if (inferDet(ctx) == InferStatus::Error)
    return InferStatus::Error;
  ctx.out[0] = ctx.in[0];
  return InferStatus::Ok;
}

InferStatus inferBinarizer(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1) || !expectNumber(ctx, 0))
    return InferStatus::Error;
  setLike(ctx.out[0], ctx.in[0], ctx.in[0].type);
  return InferStatus::Ok;
}

// X, string keys [n]?, string values [n]?, string default [1]?; numbers are attributes.
InferStatus inferLabelEncoder(InferContext &ctx) {
  auto isLabel = [](DType type) { return isPlainNumber(type) || type == DType::String; };
  if (!checkCounts(ctx, 1, 4, 1, 1) || !expectType(ctx, 0, isLabel, "a numeric or string"))
    return InferStatus::Error;
  for (size_t list : {1, 2, 3})
    if (!checkType(ctx, list, DType::String) || !expectRank(ctx, list, 0, 1))
      return InferStatus::Error;
  if (ctx.has(1) != (ctx.in[0].type == DType::String))
    return ctx.fail("keys must have the type of the operand, " + ctx.in[0].str());
  auto length = [&](size_t list, std::initializer_list<const char *> names) {
    return ctx.has(list) ? ctx.in[list].elements() : Dim(firstLength(ctx.attrs, names));
  };
  Dim keys = length(1, {"keys_int64s", "keys_floats", "keys_tensor"});
  Dim values = length(2, {"values_int64s", "values_floats", "values_tensor"});
  if (!keys.isConst() || keys.value() <= 0 || !keys.provablyEqual(values))
    return ctx.fail("expected as many keys as values, found " + keys.str() + " and " + values.str());
  if (ctx.has(3) && (!ctx.has(2) || !ctx.in[3].elements().is(1)))
    return ctx.fail("the default is " + ctx.in[3].str() + ", expected one string, with strings as values");
  int64_t code = ctx.has(2)                                  ? int64_t(DType::String)
                 : firstLength(ctx.attrs, {"values_int64s"}) ? int64_t(DType::I64)
                 : firstLength(ctx.attrs, {"values_floats"}) ? int64_t(DType::F32)
                                                             : ctx.attrs.i("values_dtype", 0);
  if (code <= 0 || code >= kDTypeCount || !(isPlainNumber(DType(code)) || ctx.has(2)))
    return ctx.fail("attribute values_dtype must be a numeric type, found " + std::to_string(code));
  setLike(ctx.out[0], ctx.in[0], DType(code));
  return InferStatus::Ok;
}

// X i32 | i64 | string, [C] or [B,C], pool of strings [P]? -> f32 [n] or [B,n] with n = max(ngram_indexes) +
// 1
InferStatus inferTfIdf(InferContext &ctx) {
  constexpr int64_t kMax = 1 << 24;
  auto isItem = [](DType type) { return type == DType::I32 || type == DType::I64 || type == DType::String; };
  if (!checkCounts(ctx, 1, 2, 1, 1) || !expectType(ctx, 0, isItem, "i32, i64 or string") ||
      !expectRank(ctx, 0, 0, 2) || !checkType(ctx, 1, DType::String) || !expectRank(ctx, 1, 1))
    return InferStatus::Error;
  if (ctx.has(1) != (ctx.in[0].type == DType::String))
    return ctx.fail("the pool must have the type of the operand, " + ctx.in[0].str());
  std::string_view mode = ctx.attrs.s("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return ctx.fail("attribute mode must be TF, IDF or TFIDF, found " + std::string(mode));
  std::span<const int64_t> starts = ctx.attrs.ints("ngram_counts"), indexes = ctx.attrs.ints("ngram_indexes");
  Dim pool = ctx.has(1) ? dimAt(ctx, 1, 0) : Dim(ctx.attrs.ints("pool_int64s").size());
  if (!pool.isConst())
    return ctx.fail("the pool is " + ctx.in[1].str() + ", expected a known number of strings");
  std::optional<int64_t> low = attrInRange(ctx, "min_gram_length", 1, 1, kMax);
  if (!low || !attrInRange(ctx, "max_gram_length", 1, *low, kMax) ||
      !attrInRange(ctx, "max_skip_count", 0, 0, kMax) || !allInRange(ctx, "ngram_indexes", 0, kMax) ||
      !allInRange(ctx, "ngram_counts", 0, pool.value()))
    return InferStatus::Error;
  if (indexes.empty() || pool.value() <= 0 || starts.empty() || !std::is_sorted(starts.begin(), starts.end()))
    return ctx.fail("a pool, ngram_indexes and rising ngram_counts must be given");
  size_t grams = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t end = i + 1 < starts.size() ? starts[i + 1] : pool.value();
    grams += size_t(end - starts[i]) / (i + 1);
  }
  if (grams > indexes.size())
    return ctx.fail("ngram_indexes must have " + std::to_string(grams) + " entries, found " +
                    std::to_string(indexes.size()));
  Dim width(*std::max_element(indexes.begin(), indexes.end()) + 1);
  ctx.out[0].type = DType::F32;
  if (!ctx.in[0].hasRank)
    return InferStatus::Ok;
  std::vector<Dim> dims = {width};
  if (ctx.in[0].rank() == 2)
    dims.insert(dims.begin(), ctx.in[0].dims[0]);
  ctx.out[0] = TensorInfo::make(DType::F32, std::move(dims));
  return InferStatus::Ok;
}

// X [N,F] -> [N,n_targets]. Cycles among the nodes are no error here: the kernel bounds its walk.
InferStatus inferTreeEnsemble(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1) || !expectFloat(ctx, 0) || !expectRank(ctx, 0, 2) ||
      !attrInRange(ctx, "aggregate_function", 1, 0, 3) || !attrInRange(ctx, "post_transform", 0, 0, 4))
    return InferStatus::Error;
  std::optional<int64_t> targets = attrInRange(ctx, "n_targets", 1, 1, 1 << 20);
  size_t nodes = ctx.attrs.ints("nodes_modes").size(), leaves = ctx.attrs.floats("leaf_weights").size();
  if (!targets ||
      !sameLengths(ctx,
                   {"nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids", "nodes_trueleafs",
                    "nodes_falseleafs"},
                   nodes) ||
      !sameLengths(ctx, {"leaf_targetids"}, leaves))
    return InferStatus::Error;
  if (ctx.attrs.floats("nodes_splits").size() != nodes)
    return ctx.fail("nodes_splits must have " + std::to_string(nodes) + " floats, found " +
                    std::to_string(ctx.attrs.floats("nodes_splits").size()));
  if (nodes == 0 || leaves == 0 || nodes > INT32_MAX || leaves > INT32_MAX)
    return ctx.fail("expected trees with nodes and leaves, found " + std::to_string(nodes) + " and " +
                    std::to_string(leaves));
  if (size_t tracks = ctx.attrs.ints("nodes_missing_value_tracks_true").size(); tracks && tracks != nodes)
    return ctx.fail("nodes_missing_value_tracks_true must have " + std::to_string(nodes) + " entries");
  Dim features = dimAt(ctx, 0, 1);
  int64_t maxFeature = features.isConst() ? features.value() - 1 : INT32_MAX;
  if (!allInRange(ctx, "nodes_modes", 0, 6) || !allInRange(ctx, "nodes_featureids", 0, maxFeature) ||
      !allInRange(ctx, "leaf_targetids", 0, *targets - 1) ||
      !allInRange(ctx, "tree_roots", 0, int64_t(nodes) - 1))
    return InferStatus::Error;
  for (const char *side : {"true", "false"}) {
    std::string name(side);
    std::span<const int64_t> ids = ctx.attrs.ints("nodes_" + name + "nodeids"),
                             isLeaf = ctx.attrs.ints("nodes_" + name + "leafs");
    for (size_t i = 0; i < ids.size() && i < isLeaf.size(); ++i)
      if (ids[i] < 0 || ids[i] >= int64_t(isLeaf[i] ? leaves : nodes))
        return ctx.fail("nodes_" + name +
                        "nodeids has an index outside the trees: " + std::to_string(ids[i]));
  }
  int64_t sets =
      std::count_if(ctx.attrs.floats("membership_values").begin(),
                    ctx.attrs.floats("membership_values").end(), [](double v) { return std::isnan(v); });
  std::span<const int64_t> modes = ctx.attrs.ints("nodes_modes");
  if (std::count(modes.begin(), modes.end(), 6) > sets)
    return ctx.fail("membership_values must have one set for each BRANCH_MEMBER node");
  ctx.out[0] = TensorInfo::make(ctx.in[0].type, {dimAt(ctx, 0, 0), Dim(*targets)});
  return InferStatus::Ok;
}

// r [N, classes * (classes - 1) / 2] -> [N, classes]
InferStatus inferPairwiseProbability(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1) || !checkType(ctx, 0, DType::F32) || !expectRank(ctx, 0, 2))
    return InferStatus::Error;
  std::optional<int64_t> classes = attrInRange(ctx, "classes", 0, 2, 1 << 12);
  if (!classes)
    return InferStatus::Error;
  if (Dim pairs = dimAt(ctx, 0, 1); !mergeDims(pairs, Dim(*classes * (*classes - 1) / 2)))
    return ctx.fail("expected a column for each pair of " + std::to_string(*classes) + " classes, found " +
                    ctx.in[0].str());
  ctx.out[0] = TensorInfo::make(DType::F32, {dimAt(ctx, 0, 0), Dim(*classes)});
  return InferStatus::Ok;
}

std::span<const OpEntry> mlOps() {
  static constexpr OpEntry kOps[] = {
      {"det", inferDet},
      {"inverse", inferInverse},
      {"binarizer", inferBinarizer, 0b1},
      {.name = "label_encoder", .infer = inferLabelEncoder, .takesStrings = true},
      {.name = "tf_idf_vectorizer", .infer = inferTfIdf, .takesStrings = true},
      {"tree_ensemble", inferTreeEnsemble},
      {"pairwise_probability", inferPairwiseProbability},
  };
  return kOps;
}

} // namespace dspark
