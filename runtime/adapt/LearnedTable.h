// What adaptation has learned, as a JSON file: estimates by shapes, region and variant, for one machine and
// one plan.
#pragma once
#include "runtime/adapt/Adapter.h"
#include "runtime/base/Status.h"
#include <string>

namespace dspark {

/// Of whom a table speaks; elsewhere it is worth nothing.
struct LearnedFor {
  std::string machine; // MachineFacts::fingerprint()
  std::string plan;    // hash of its sections
  std::string devices; // names and kinds
};

/// Written beside and renamed.
Status saveLearnedTable(const std::string &path, const LearnedFor &whom,
                        const std::vector<LearnedBucket> &buckets);
/// NotFound; Mismatch if it speaks of another machine, plan or devices; CorruptFile.
StatusOr<std::vector<LearnedBucket>> loadLearnedTable(const std::string &path, const LearnedFor &whom);

} // namespace dspark
