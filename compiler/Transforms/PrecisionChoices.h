// Which contractions are computed in fewer bits, and what a search for that needs to know about them. A
// contraction is named by its ONNX node.
#pragma once
#include "dialects/DSpark/WeightStore.h"
#include "mlir/Pass/Pass.h"
#include "planning/ByteRange.h"
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace dspark {

/// The layout that stands for bytes on both sides, with scales that calibration found.
inline constexpr const char *kStaticInt8 = "int8_static";

struct PrecisionChoice {
  std::string layout;     // of QuantizedWeight.h, or kStaticInt8; of attention, which has no weights, bf16
  std::string arithmetic; // of the former: "int8", or "" where rows stay f32
  int64_t mostRows = 0;   // of the former: with more rows the product is of f32; 0: always in this form
};

/// A product or convolution with constant weights that may run on bytes.
struct ByteContraction {
  std::string node, location; // the latter with the nodes that were folded into it
  bool isConv = false;
  int64_t k = 0, n = 0; // terms of a sum, output channels
  size_t input = 0;     // number of the value it reads
};

/// A value that may become bytes on its way to a contraction (ByteFlow.h).
struct ByteValue {
  int contraction = -1;         // that makes it, or -1
  std::vector<size_t> operands; // the values whose bytes make its bytes; with neither it is only quantised
  bool hasFloatReaders = false; // besides contractions and what makes other values
};

/// What the pass quantize-contractions does.
enum class ByteMode {
  None,
  Observe, // each value that may become bytes is an output, in the order of their numbers
  Compare, // each contraction computes both, an input chooses, an output has their squared difference
  Apply,   // the chosen ones
};

/// Of the plan of Compare: the input that chooses (a bool per contraction) and the output of 2 sums of
/// squares per contraction: of the difference and of the f32 result.
inline constexpr const char *kByteFlags = "dspark.bytes", *kByteErrors = "dspark.errors";
/// The steps of contraction i are called kByteStep + i, those that quantise for it kQuantizeStep + i.
inline constexpr const char *kByteStep = "dspark.bytes#", *kQuantizeStep = "dspark.quantize#";

/// A product [.., k] x [k, n] of f32 whose weights may be packed in fewer bits.
struct PackedProduct {
  std::string node;
  int64_t k = 0, n = 0;
};

struct PrecisionChoices {
  std::map<std::string, PrecisionChoice> chosen; // by node; others stay as they are
  ByteMode bytes = ByteMode::None;
  std::vector<ByteRange> ranges; // by number of the value; of Compare and Apply

  // Filled by passes:
  std::vector<ByteContraction> contractions; // with bytes != None
  std::vector<ByteValue> values;             // likewise, by number
  std::vector<PackedProduct> products;       // in the order of their steps in the plan
  std::vector<std::string> attentions;       // likewise, by node
  std::set<std::string> applied;             // of `chosen`
};

/// The passes with choices, which the caller keeps; null leaves everything as it is.
std::unique_ptr<mlir::Pass> createPackWeightsPass(std::shared_ptr<WeightStore> weights,
                                                  PrecisionChoices *choices);
std::unique_ptr<mlir::Pass> createQuantizeContractionsPass(std::shared_ptr<WeightStore> weights,
                                                           PrecisionChoices *choices);

} // namespace dspark
