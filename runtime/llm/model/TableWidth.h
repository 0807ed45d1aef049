// How wide page tables are made for plans.
#pragma once
#include <cstdint>

namespace dspark::llm {

/// For so many pages: 8, 32, 128 ..., so that growing sequences meet few shapes.
inline int64_t tableWidth(int64_t pages) {
  constexpr int64_t kLeast = 8, kGrowth = 4;
  int64_t width = kLeast;
  while (width < pages)
    width *= kGrowth;
  return width;
}

} // namespace dspark::llm
