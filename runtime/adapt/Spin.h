// A known amount of work for the CPU, for canaries: how long it takes tells whether something else is
// running.
#pragma once
#include <cstdint>

namespace dspark {

/// About ten microseconds of dependent arithmetic per tile; a tile function of ThreadPool.
inline void spin(void *, uint32_t begin, uint32_t end, int) {
  volatile double sink = 0;
  for (uint32_t tile = begin; tile < end; ++tile) {
    double x = 1;
    for (int i = 0; i < 2500; ++i)
      x = x * 0.999 + 0.001;
    sink = x;
  }
  (void)sink;
}

} // namespace dspark
