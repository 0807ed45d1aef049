// The table of ONNX operators: for each operator, and each version since which its form changed, how it
// becomes operations of the catalogue. One table per family in ops/*.cpp; most rows are one line.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace dspark::onnx {

class Node;

/// How many operands and results a node may have. Results up to `minOut` are always made, used or not.
struct Arity {
  uint8_t minIn = 1, maxIn = 1, minOut = 1, maxOut = 1;
};
inline constexpr uint8_t kVariadic = 255;

struct OpRow {
  std::string_view domain; // "" is ai.onnx
  std::string_view op;
  int since; // until the row of the same operator with the next larger number
  Arity arity;
  /// Attributes the node may have, "name:type" separated by blanks; types are i, f, s, t (tensor), g (graph),
  /// p (sparse tensor), y (type), and in capitals lists of them; `!` marks a required one; "a>b:i" is passed
  /// on as b. Checked before `build` runs.
  std::string_view attributes;
  /// Rows without `build`: one operation `entry` of the catalogue with the node's operands and attributes,
  /// and `kind` as its kind if not empty.
  std::string_view entry, kind;
  void (*build)(Node &);
  /// Not null: known, and why it is not supported.
  const char *refusal;
};

/// The row for that operator at that opset version; null if there is none. `older` is then set if the
/// operator exists, but only in newer versions.
const OpRow *findRow(std::string_view domain, std::string_view op, int64_t version, bool *older = nullptr);

/// All rows, for tests and for the page of supported operators.
std::span<const OpRow *const> allRows();

// --- for the tables
// ----------------------------------------------------------------------------------------------

using BuildFn = void (*)(Node &);
constexpr OpRow direct(std::string_view op, int since, Arity arity, std::string_view entry,
                       std::string_view attributes = "", std::string_view kind = "") {
  return {"", op, since, arity, attributes, entry, kind, nullptr, nullptr};
}
constexpr OpRow built(std::string_view op, int since, Arity arity, BuildFn build,
                      std::string_view attributes = "") {
  return {"", op, since, arity, attributes, "", "", build, nullptr};
}
constexpr OpRow refused(std::string_view op, int since, const char *why) {
  return {"", op, since, {0, kVariadic, 1, kVariadic}, "", "", "", nullptr, why};
}
/// The same row for another domain.
constexpr OpRow in(std::string_view domain, OpRow row) {
  row.domain = domain;
  return row;
}

using OpRows = std::span<const OpRow>;
OpRows elementwiseRows();
OpRows reduceRows();
OpRows normRows();
OpRows movementRows();
OpRows indexRows();
OpRows contractionRows();
OpRows quantRows();
OpRows recurrentRows();
OpRows attentionRows();
OpRows imageRows();
OpRows generatorRows();
OpRows lossRows();
OpRows controlRows();
OpRows sequenceRows();
OpRows textRows();
OpRows microsoftRows();
OpRows microsoftQuantRows();
OpRows contribRows();
OpRows expertRows();
OpRows mlRows();
OpRows mlFeatureRows();
OpRows mlPredictorRows();
OpRows mlTreeRows();

} // namespace dspark::onnx
