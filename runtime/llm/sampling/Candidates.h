// The tokens still in the running, and the cuts that narrow them: top-k happens when they are chosen, then
// top-p, min-p and typical.
#pragma once
#include "runtime/llm/sampling/Distribution.h"
#include <cstdint>
#include <vector>

namespace dspark::llm {

struct Candidate {
  int32_t token = 0;
  float weight = 0;  // above 0; its probability times a common factor
  uint32_t rank = 0; // a cut's own: the lowest stay
};

/// Keeps the fewest most probable ones that together have `mass` of weight (Holtzman et al. 2020, top-p). Of
/// equal ones those with the lowest ids stay.
void keepNucleus(std::vector<Candidate> &candidates, double mass);

/// Keeps the fewest whose surprise is nearest to the entropy of all and that together have the share `p`
/// (Meister et al. 2023, locally typical sampling).
void keepTypical(std::vector<Candidate> &candidates, double p);

/// Orders them by token and makes their weights sum to 1.
void normalize(std::vector<Candidate> &candidates, Distribution &out);

} // namespace dspark::llm
