// Measured steps, kept from one start to the next: measuring them takes half a second.
#pragma once
#include "runtime/format/PlanFile.h"
#include "runtime/llm/model/StepCost.h"
#include <string>

namespace dspark::llm {

/// The file of one plan's steps on this machine, with so many threads and points, in $XDG_CACHE_HOME/dspark
/// or ~/.cache/dspark. What it holds are times: the worst that a wrong one can do is a bad choice of drafts,
/// which observed steps correct.
class StepCostFile {
public:
  StepCostFile(const PlanFile &plan, int threads, const StepCostOptions &options)
      : StepCostFile(hashOf(plan), threads, options) {}
  StepCostFile(uint64_t planHash, int threads, const StepCostOptions &options);

  /// "" where there is no such folder.
  const std::string &path() const { return where; }
  bool exists() const;
  /// Errors: CorruptFile if it is none, or of another plan, machine, or number of threads; IoError.
  StatusOr<CostTable> load() const;
  /// Written beside and renamed, so that a reader never sees half of it. Errors: IoError.
  Status save(const CostTable &table) const;

private:
  static uint64_t hashOf(const PlanFile &plan);

  std::string key, where;
};

} // namespace dspark::llm
