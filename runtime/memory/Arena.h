// Memory of one session: a budget that everything is charged to, arenas that grow without moving, and plain
// blocks.
#pragma once
#include "runtime/base/Status.h"
#include <cstddef>
#include <cstdint>
#include <memory>

namespace dspark {

/// Bytes that a session may use for tensors and scratch. Not thread-safe.
class MemoryBudget {
public:
  explicit MemoryBudget(uint64_t limit) : most(limit) {}
  /// OutOfMemory, naming `what`, if `bytes` more would exceed the limit.
  Status take(uint64_t bytes, const char *what);
  void giveBack(uint64_t bytes) { used -= bytes; }
  uint64_t limit() const { return most; }
  uint64_t inUse() const { return used; }

private:
  uint64_t most, used = 0;
};

/// The memory this machine can give a process: physical memory, lowered to the cgroup's limit.
uint64_t machineMemory();

/// One range of addresses, reserved up to the budget's limit and made usable as it grows, so that pointers
/// into it stay valid: records of all traces point into the same arena.
class Arena {
public:
  explicit Arena(MemoryBudget &budget) : budget(budget) {}
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  /// Makes [0, bytes) usable.
  Status ensure(uint64_t bytes);
  std::byte *at(int64_t offset) const { return base + offset; }
  uint64_t bytes() const { return usable; }

private:
  Status reserve();
  MemoryBudget &budget;
  std::byte *base = nullptr;
  uint64_t reserved = 0, usable = 0;
};

/// A 64-byte aligned block that only grows; growing loses what it held.
class Block {
public:
  explicit Block(MemoryBudget &budget) : budget(&budget) {}
  ~Block() { release(); }
  Block(Block &&other) noexcept;
  Block &operator=(Block &&) = delete;

  Status ensure(uint64_t bytes, const char *what);
  /// The same, keeping the first `keep` bytes and growing at least by half.
  Status grow(uint64_t bytes, uint64_t keep, const char *what);
  std::byte *data() const { return memory; }
  uint64_t bytes() const { return size; }

private:
  void release();
  MemoryBudget *budget;
  std::byte *memory = nullptr;
  uint64_t size = 0;
};

} // namespace dspark
