#include "runtime/memory/RunStrings.h"
#include <algorithm>

namespace dspark {

char *RunStrings::take(uint64_t bytes) {
  constexpr uint64_t kBlockBytes = 64 << 10;
  while (block < blocks.size() && bytes > blocks[block].bytes() - used) {
    ++block;
    used = 0;
  }
  if (block == blocks.size()) {
    Status enough = blocks.emplace_back(budget).ensure(std::max(bytes, kBlockBytes), "strings");
    if (!enough.isOk()) {
      blocks.pop_back();
      status = std::move(enough);
      return nullptr;
    }
  }
  auto *place = reinterpret_cast<char *>(blocks[block].data() + used);
  used += bytes;
  return place;
}

void RunStrings::refuse(std::string reason) {
  if (status.isOk())
    status = invalidArgument(std::move(reason));
}

void RunStrings::locate(const std::string &where) {
  if (!isLocated)
    status = status.in(where);
  isLocated = true;
}

} // namespace dspark
