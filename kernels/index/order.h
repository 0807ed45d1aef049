// The order of elements that sorting operators share: NaN is larger than every number and equal to itself, as
// numpy sorts. Strings are ordered by their bytes.
#pragma once
#include "kernels/common/strings.h"
#include <type_traits>

namespace dspark::index_ops {

template <typename T> bool isLess(T a, T b) {
  if constexpr (std::is_same_v<T, StringElement>) {
    return std::string_view(a) < std::string_view(b);
  } else if constexpr (std::is_integral_v<T>) {
    return a < b;
  } else {
    using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
    Real x = a, y = b;
    return x < y || (x == x && y != y);
  }
}

} // namespace dspark::index_ops
