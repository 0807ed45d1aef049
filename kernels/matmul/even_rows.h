// Blocks of rows (even_blocks.h) whose code knows its number of rows. Included once per ISA level.
#pragma once
#include "kernels/matmul/even_blocks.h"
#include <utility>

namespace dspark {
namespace {

/// What Make says of 1, 2 ... N rows, in order.
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
