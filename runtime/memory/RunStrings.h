// The characters of strings that kernels make in one run. Blocks are kept from run to run, so a later run of
// the same size allocates nothing.
#pragma once
#include "kernels/common/strings.h"
#include "runtime/memory/Arena.h"
#include <deque>

namespace dspark {

class RunStrings final : public StringRun {
public:
  explicit RunStrings(MemoryBudget &budget) : budget(budget) {}

  /// Before a run: what earlier ones made goes.
  void reset() {
    block = used = 0;
    status = Status::ok();
    isLocated = false;
  }
  char *take(uint64_t bytes) override;
  void refuse(std::string reason) override;
  /// What a kernel complained of since reset(), or Ok.
  const Status &problem() const { return status; }
  /// Names the place of the problem, if nobody has yet.
  void locate(const std::string &where);

private:
  MemoryBudget &budget;
  std::deque<Block> blocks;
  size_t block = 0;  // the one being filled
  uint64_t used = 0; // of it
  Status status;
  bool isLocated = false;
};

} // namespace dspark
