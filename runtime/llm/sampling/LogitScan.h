// Passes over one row of logits, written so that a compiler makes four-wide code of them on any x86-64: a row
// of 49,152 logits is read at the speed of the cache it lies in.
#pragma once
#include "runtime/base/Status.h"
#include <cstdint>
#include <span>
#include <vector>

namespace dspark::llm {

struct ScoredToken {
  int32_t token = 0;
  float logit = 0;
};

/// The largest logit of each block of kBlock, and of all. Whoever wants few of many tokens looks only into
/// the blocks that can hold them.
class LogitScan {
public:
  static constexpr int64_t kBlock = 64;

  /// Reads a row; it must stay valid for the questions below. Errors: an empty row, NaN or plus infinity
  /// (with the token), nothing but minus infinity. A single minus infinity is a token the model rules out.
  Status read(std::span<const float> logits);

  float largest() const { return most; }
  /// The token of the largest logit, of several the one with the lowest id.
  int32_t argmax() const;
  /// The k largest, of equal ones those with the lowest ids; in no order. Minus infinity is never among them.
  void top(int64_t k, std::vector<ScoredToken> &out);

private:
  std::span<const float> row;
  std::vector<float> maxima, scratch;
  float most = 0;
};

/// e^x for x <= 0 within 2e-7 of its value, 0 below -87: Cody and Waite's reduction, a polynomial of
/// degree 6.
float expNegative(float x);

/// weights[i] = e^((logits[i] - largest) / temperature); returns their sum.
double expWeights(std::span<const float> logits, float largest, float temperature, std::span<float> weights);

} // namespace dspark::llm
