// What a plan says of its drafters: the section DRAFTERS, JSON. dspark-compile writes it, dspark-rt chooses
// by it.
#pragma once
#include "runtime/base/Status.h"
#include "runtime/llm/speculation/TemperatureScaling.h"
#include <string>
#include <string_view>
#include <vector>

namespace dspark::llm {

/// A drafter that the plan holds. Its functions are `function` and, with a head, `function`_head
/// (frontends/language/DraftBuilder.h and DecoderBuilder.h have their operands).
struct DrafterRecord {
  enum class Kind { Block, Eagle3, Self } kind = Kind::Block;
  std::string name; // as --speculate and statistics call it
  std::string function;
  int32_t longestDraft = 0; // tokens

  // Of block drafts:
  int32_t blockRows = 0, maskToken = 0;
  bool anchorPredicts = true, hasHead = false;
  int64_t headState = 0, draftLogits = 0;
  int64_t hidden = 0; // of block drafts and EAGLE-3
  // Of the model's own layers:
  std::vector<int64_t> layers;

  // Measured when the plan was made; none and negative if that was not asked for.
  TemperatureScaling scaling; // of its confidences
  double acceptance = -1;     // of first drafts
};

/// Tokens that an EAGLE-3 draft goes on by itself: as often as it was trained to.
inline constexpr int32_t kEagle3Draft = 7;
/// Most tokens that a model's own layers draft: each costs a good part of a step.
inline constexpr int32_t kSelfDraft = 6;

struct DraftersSection {
  bool speculates = true; // false: --no-speculation; nothing is drafted unless asked for
  std::vector<DrafterRecord> drafters;
};

std::string encodeDrafters(const DraftersSection &section);
/// "" gives a section without drafters. Errors: CorruptFile with the field.
StatusOr<DraftersSection> decodeDrafters(std::string_view json);

} // namespace dspark::llm
