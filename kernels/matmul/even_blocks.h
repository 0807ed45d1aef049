// Rows of a product in blocks of nearly equal size. A block of few rows waits for its sums: 49 rows as 10 10
// 10 10 9 take a tenth less than as 12 12 12 12 1. Included once per ISA level.
#pragma once
#include <cstdint>

namespace dspark {
namespace {

/// Calls f(rows, first row) for blocks of at most `most` of the rows [row, end).
template <typename F>
inline __attribute__((always_inline)) void evenBlocks(int64_t row, int64_t end, int64_t most, F f) {
  for (int64_t blocks = (end - row + most - 1) / most; blocks > 0; --blocks) {
    int64_t size = (end - row + blocks - 1) / blocks;
    f(size, row);
    row += size;
  }
}

} // namespace
} // namespace dspark
