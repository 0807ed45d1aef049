// Which products with constant weights are computed in fewer bits. Products are numbered in the order in
// which the packing pass meets them, which is the order of their steps in the plan.
#pragma once
#include "dialects/DSpark/WeightStore.h"
#include "mlir/Pass/Pass.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dspark {

struct PrecisionChoice {
  std::string layout;     // of QuantizedWeight.h
  std::string arithmetic; // "int8", or "" where rows stay f32
};

struct PrecisionChoices {
  /// Of a product [.., k] x [k, n] of f32 that may be chosen.
  struct Product {
    int64_t k = 0, n = 0;
  };
  std::map<size_t, PrecisionChoice> chosen; // by number; others stay f32
  std::vector<Product> products;            // filled by the pass
};

/// The packing pass with choices, which the caller keeps; null leaves everything f32.
std::unique_ptr<mlir::Pass> createPackWeightsPass(std::shared_ptr<WeightStore> weights,
                                                  PrecisionChoices *choices);

} // namespace dspark
