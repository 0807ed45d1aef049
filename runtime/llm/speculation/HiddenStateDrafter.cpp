#include "runtime/llm/speculation/HiddenStateDrafter.h"

namespace dspark::llm {

void HiddenStateDrafter::prepare(Job &job, int64_t room, int64_t again) {
  Memory &memory = *job.memory;
  const int64_t context = contextOf(memory);
  const std::span<const int32_t> pages = job.growth.request->pages;
  job.growth.isDone = job.growth.limit <= 0 || context < again ||
                      std::ssize(pages) * targetPageSize < context || !reserve(memory, context + room);
  memory.written = std::min(memory.written, std::max<int64_t>(context - again, 0));
  for (int64_t i = memory.written; i < context && !job.growth.isDone; ++i)
    job.slots.push_back(int32_t(pages[size_t(i / targetPageSize)] * targetPageSize + i % targetPageSize));
}

} // namespace dspark::llm
