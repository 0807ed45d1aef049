#include "runtime/memory/Arena.h"
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace dspark {
namespace {

constexpr uint64_t kHugePage = 2 << 20;

uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

} // namespace

Status MemoryBudget::take(uint64_t bytes, const char *what) {
  if (bytes > most - used)
    return {Code::OutOfMemory, std::string(what) + " needs " + std::to_string(bytes) + " bytes more, " +
                                   std::to_string(used) + " of the limit of " + std::to_string(most) +
                                   " are in use"};
  used += bytes;
  return Status::ok();
}

uint64_t machineMemory() {
  uint64_t memory = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  for (const char *path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    uint64_t limit;
    if (std::ifstream(path) >> limit) // "max" is no number
      memory = std::min(memory, limit);
  }
  return memory;
}

Arena::~Arena() {
  if (base)
    munmap(base, reserved);
  budget.giveBack(usable);
}

// Address space may be limited (ulimit -v), so a smaller reservation is tried before giving up.
Status Arena::reserve() {
  for (reserved = alignUp(budget.limit(), kHugePage) + kHugePage; reserved >= kHugePage;
       reserved = reserved / 2) {
    reserved = alignUp(reserved, kHugePage);
    void *address = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address != MAP_FAILED) {
      base = static_cast<std::byte *>(address);
      return Status::ok();
    }
    if (reserved == kHugePage)
      break;
  }
  return {Code::OutOfMemory, std::string("cannot reserve addresses for tensors: ") + std::strerror(errno)};
}

Status Arena::ensure(uint64_t bytes) {
  if (bytes <= usable)
    return Status::ok();
  if (!base)
    DSPARK_RETURN_IF_ERROR(reserve());
  // Large arenas grow by whole huge pages, so that the kernel can back them with such.
  uint64_t wanted = alignUp(bytes, bytes >= kHugePage ? kHugePage : 4096);
  if (wanted > reserved)
    return {Code::OutOfMemory, "tensors need " + std::to_string(bytes) +
                                   " bytes, the reserved addresses hold " + std::to_string(reserved)};
  DSPARK_RETURN_IF_ERROR(budget.take(wanted - usable, "the tensors of this shape"));
  if (mprotect(base, wanted, PROT_READ | PROT_WRITE) != 0) {
    budget.giveBack(wanted - usable);
    return {Code::OutOfMemory,
            "cannot get " + std::to_string(wanted) + " bytes for tensors: " + std::strerror(errno)};
  }
  if (wanted >= kHugePage)
    madvise(base, wanted, MADV_HUGEPAGE); // only a hint
  usable = wanted;
  return Status::ok();
}

Block::Block(Block &&other) noexcept
    : budget(other.budget), memory(std::exchange(other.memory, nullptr)), size(std::exchange(other.size, 0)) {
}

void Block::release() {
  std::free(memory);
  budget->giveBack(size);
  memory = nullptr;
  size = 0;
}

Status Block::ensure(uint64_t bytes, const char *what) { return grow(bytes, 0, what); }

Status Block::grow(uint64_t bytes, uint64_t keep, const char *what) {
  if (bytes <= size)
    return Status::ok();
  if (bytes > budget->limit())
    return budget->take(bytes, what);
  uint64_t wanted = alignUp(keep > 0 ? std::max(bytes, size + size / 2) : bytes, 64);
  DSPARK_RETURN_IF_ERROR(budget->take(wanted, what));
  auto *fresh = static_cast<std::byte *>(std::aligned_alloc(64, wanted));
  if (!fresh) {
    budget->giveBack(wanted);
    return {Code::OutOfMemory, std::string(what) + ": cannot get " + std::to_string(wanted) + " bytes"};
  }
  if (keep > 0)
    std::memcpy(fresh, memory, keep);
  release();
  memory = fresh;
  size = wanted;
  return Status::ok();
}

} // namespace dspark
