// Inverse frequencies of rotary embeddings, as Hugging Face's modeling_rope_utils names and computes the
// kinds.
#pragma once
#include "frontends/checkpoint/DecoderConfig.h"

namespace dspark::checkpoint {

/// 1 / base^(2i / rotated), i < rotated / 2, each divided by `factor` (kind "linear").
RopeTable plainRope(double base, int64_t rotated, double factor = 1);

/// Kind "yarn" (Peng et al. 2023): frequencies that turn often within the original context stay, slow ones
/// are divided by `factor`, those between are blended.
struct YarnSettings {
  double factor = 1;
  int64_t originalContext = 0;
  double betaFast = 32, betaSlow = 1;
  double magnitude = 0;    // of cosine and sine; 0: 0.1 ln(factor) + 1
  bool isTruncated = true; // the blend begins and ends at whole pairs
};
RopeTable yarnRope(double base, int64_t rotated, const YarnSettings &settings);

/// Kind "llama3": wavelengths beyond originalContext / lowFactor are divided by `factor`, those below
/// originalContext / highFactor stay, between them it is blended.
struct Llama3Settings {
  double factor = 1, lowFactor = 1, highFactor = 4;
  int64_t originalContext = 0;
};
RopeTable llama3Rope(double base, int64_t rotated, const Llama3Settings &settings);

/// Divides every frequency by its own factor (a file's rope_freqs, kind "longrope").
void divideFrequencies(RopeTable &table, const std::vector<float> &factors);

} // namespace dspark::checkpoint
