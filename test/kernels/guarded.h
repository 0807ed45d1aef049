// Memory whose neighbourhood cannot be touched: a block that lies flush against an inaccessible page, so that
// a kernel which reads or writes one byte beyond its tensor ends in a signal instead of in somebody else's
// data.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace dspark::test {

/// Which end of the block has the inaccessible page right behind (or before) it; the other end is up to a
/// page away.
enum class Flush { AtEnd, AtStart };

class Guarded {
public:
  Guarded(size_t bytes, Flush flush) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE));
    usable = (bytes + page - 1) / page * page;
    mapped = usable + 2 * page;
    void *base = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
      std::abort();
    memory = static_cast<std::byte *>(base);
    allow(PROT_READ | PROT_WRITE);
    block = memory + page + (flush == Flush::AtEnd ? usable - bytes : 0);
  }
  ~Guarded() {
    if (memory)
      munmap(memory, mapped);
  }
  Guarded(Guarded &&other) noexcept
      : memory(std::exchange(other.memory, nullptr)), block(other.block), usable(other.usable),
        mapped(other.mapped) {}
  Guarded &operator=(Guarded &&) = delete;

  std::byte *data() const { return block; }
  /// From here on, writing to the block is an error too.
  void makeReadOnly() { allow(PROT_READ); }

private:
  void allow(int what) {
    if (usable > 0 && mprotect(memory + (mapped - usable) / 2, usable, what) != 0)
      std::abort();
  }

  std::byte *memory = nullptr, *block = nullptr;
  size_t usable = 0, mapped = 0;
};

} // namespace dspark::test
