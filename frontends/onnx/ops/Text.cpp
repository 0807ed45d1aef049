// Operators on strings. Lists of strings become constant operands, since attributes hold one string at most.
#include "frontends/onnx/Node.h"

namespace dspark::onnx {
namespace {

/// How many parts each string has, and then the parts, in rows of the largest number.
void buildStringSplit(Node &n) {
  Attributes attributes = n.pick("delimiter maxsplit");
  Values sizes = n.emit("string_split_sizes", {n.in(0)}, attributes, 2);
  if (n.failed())
    return;
  n.out(0, n.one("string_split", {n.in(0), sizes[1]}, attributes));
  n.out(1, sizes[0]);
}

void buildStringNormalizer(Node &n) {
  mlir::Value stopwords = n.hasAttribute("stopwords") ? n.stringList(n.strings("stopwords")) : mlir::Value();
  n.out(0, n.one("string_normalizer", {n.in(0), stopwords}, n.pick("case_change_action is_case_sensitive")));
}

void buildTfIdf(Node &n) {
  if (n.hasAttribute("pool_strings") == n.hasAttribute("pool_int64s"))
    return n.invalid("expected one of pool_strings and pool_int64s");
  mlir::Value pool = n.hasAttribute("pool_strings") ? n.stringList(n.strings("pool_strings")) : mlir::Value();
  n.out(
      0,
      n.one(
          "tf_idf_vectorizer", {n.in(0), pool},
          n.pick("max_gram_length max_skip_count min_gram_length mode ngram_counts ngram_indexes pool_int64s "
                 "weights")));
}

constexpr OpRow rows[] = {
    direct("RegexFullMatch", 20, {}, "regex_full_match", "pattern:s"),
    direct("StringConcat", 20, {2, 2}, "string_concat"),
    built("StringNormalizer", 10, {}, buildStringNormalizer,
          "case_change_action:s is_case_sensitive:i locale:s stopwords:S"),
    built("StringSplit", 20, {1, 1, 1, 2}, buildStringSplit, "delimiter:s maxsplit:i"),
    built("TfIdfVectorizer", 9, {}, buildTfIdf,
          "max_gram_length:i! max_skip_count:i! min_gram_length:i! mode:s! ngram_counts:I! ngram_indexes:I! "
          "pool_int64s:I pool_strings:S weights:F"),
};

} // namespace

OpRows textRows() { return rows; }

} // namespace dspark::onnx
