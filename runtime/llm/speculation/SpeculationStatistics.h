// What speculation did, for --stats and metrics: enough to see where acceptance is lost and whether
// predictions hold.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dspark::llm {

/// First tokens of drafts without confidences, of similar evidence.
struct MatchStatistics {
  int64_t judged = 0, accepted = 0;
  float learned = 0; // the acceptance that is expected of the next
};

struct DrafterStatistics {
  std::string name;
  int64_t drafts = 0; // with at least one token
  int64_t draftedTokens = 0, verifiedTokens = 0, acceptedTokens = 0;
  int64_t failures = 0;            // errors and drafts that break the rules
  std::string lastFailure;         // its sentence
  std::vector<int64_t> judgedAt;   // by position: drafts that verification accepted or rejected there
  std::vector<int64_t> acceptedAt; // and accepted
  std::map<int32_t, MatchStatistics> byMatch; // from this match on, up to the next
  double expectedTokens = 0; // that the estimates of verified drafts promised; compare with acceptedTokens
};

struct SpeculationStatistics {
  int64_t steps = 0;           // of decoding
  int64_t speculatedSteps = 0; // that verified a draft
  int64_t parkedSteps = 0;     // that some drafter was parked in, having lost its share of time
  int64_t probes = 0;          // steps that drafted to learn, not to gain
  int64_t committedTokens = 0;
  double draftSeconds = 0, verifySeconds = 0;
  std::vector<DrafterStatistics> drafters;
};

} // namespace dspark::llm
