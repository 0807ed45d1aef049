// Rows of a product in blocks of nearly equal size, whose code knows its number of rows. A block of few rows
// waits for its sums: 49 rows as 10 10 10 10 9 take a tenth less than as 12 12 12 12 1. Included once per ISA
// level.
#pragma once
#include <cstdint>
#include <utility>

namespace dspark {
namespace {

// Calls f(rows, first row) for blocks of at most `most` of the rows [row, end).
template <typename F>
inline __attribute__((always_inline)) void evenBlocks(int64_t row, int64_t end, int64_t most, F f) {
  for (int64_t blocks = (end - row + most - 1) / most; blocks > 0; --blocks) {
    int64_t size = (end - row + blocks - 1) / blocks;
    f(size, row);
    row += size;
  }
}

// What Make says of 1, 2 ... N rows, in order.
template <typename T, int N> struct RowTable {
  T rows[N];
  T operator[](int64_t count) const { return rows[count - 1]; }
};
template <typename T, int N, typename Make> constexpr RowTable<T, N> rowTable(Make make) {
  return [&]<int... R>(std::integer_sequence<int, R...>) {
    return RowTable<T, N>{{make.template operator()<R + 1>()...}};
  }(std::make_integer_sequence<int, N>());
}

} // namespace
} // namespace dspark
