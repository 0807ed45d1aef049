#include "runtime/llm/speculation/PagedDrafter.h"
#include <algorithm>
#include <numeric>

namespace dspark::llm {

PagedDrafter::PagedDrafter(const CacheFacts &cache, int64_t usualPending)
    : cache(cache), usualPending(usualPending), freePages(size_t(cache.pages)) {
  std::iota(freePages.rbegin(), freePages.rend(), 0);
}

Status PagedDrafter::append(SequenceId sequence, std::span<const int32_t> tokens) {
  DSPARK_ASSIGN_OR_RETURN(Memory * memory, memories.find(sequence));
  std::vector<int32_t> &speculated = memory->speculated;
  const size_t both = std::min(tokens.size(), speculated.size());
  const size_t equal = size_t(
      std::mismatch(tokens.begin(), tokens.begin() + long(both), speculated.begin()).first - tokens.begin());
  speculated.erase(speculated.begin(), speculated.begin() + long(equal));
  if (equal < tokens.size()) { // what was speculated beyond that did not come
    memory->written -= int64_t(speculated.size());
    speculated.clear();
  }
  memory->tokens.insert(memory->tokens.end(), tokens.begin(), tokens.end());
  return Status::ok();
}

Status PagedDrafter::truncate(SequenceId sequence, int64_t length) {
  DSPARK_ASSIGN_OR_RETURN(Memory * memory, memories.find(sequence));
  DSPARK_RETURN_IF_ERROR(memories.checkCut(sequence, memory->length(), length));
  memory->speculated.clear();
  memory->tokens.resize(size_t(length));
  memory->written = std::min(memory->written, length);
  return Status::ok();
}

void PagedDrafter::forget(SequenceId sequence) {
  if (const StatusOr<Memory *> memory = memories.find(sequence); memory.isOk())
    release(**memory);
  memories.forget(sequence);
}

int64_t PagedDrafter::backlog(SequenceId sequence) const {
  const Memory *memory = memories.get(sequence);
  return memory ? std::max<int64_t>(memory->length() - memory->written - usualPending, 0) : 0;
}

void PagedDrafter::release(Memory &memory) {
  freePages.insert(freePages.end(), memory.pages.rbegin(), memory.pages.rend());
  memory.pages.clear();
  memory.speculated.clear();
  memory.written = 0;
}

bool PagedDrafter::takePagesOfOldest() {
  Memory *oldest = nullptr;
  for (auto &[sequence, memory] : memories)
    if (!memory.pages.empty() && memory.lastUse < uses && (!oldest || memory.lastUse < oldest->lastUse))
      oldest = &memory;
  if (oldest)
    release(*oldest);
  return oldest;
}

bool PagedDrafter::reserve(Memory &memory, int64_t tokens) {
  const size_t pages = size_t((tokens + cache.pageSize - 1) / cache.pageSize);
  if (tokens > cache.contextLength || pages > size_t(cache.pages))
    return false;
  while (memory.pages.size() < pages) {
    if (freePages.empty() && !takePagesOfOldest())
      return false;
    memory.pages.push_back(freePages.back());
    freePages.pop_back();
  }
  return true;
}

} // namespace dspark::llm
