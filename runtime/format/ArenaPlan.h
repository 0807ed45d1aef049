// Places buffers with known lifetimes in one arena. Pure arithmetic: the runtime places the buffers of a
// trace with it, the compiler prints the same figures.
//
// Greedy: buffers in some order, each into the tightest gap between the already placed ones that are alive
// with it. Several orders are tried (by size and by breadth: Pisarchyk and Lee, "Efficient memory management
// for deep neural net inference", 2020), and the best one is improved by placing earlier what reached the
// end.
#pragma once
#include <cstdint>
#include <vector>

namespace dspark {

inline constexpr int64_t kArenaAlignment = 64;

struct ArenaBuffer {
  int64_t bytes = 0;
  int first = 0; // lifetime in steps, both ends included
  int last = 0;
  int64_t offset = -1; // in: a place that must be kept, or -1. out: the place
};

struct ArenaPlan {
  int64_t bytes = 0;      // the arena's size
  int64_t lowerBound = 0; // the largest sum of (aligned) bytes alive at one step
};

/// Fills in the offsets. Nothing overflows as long as the buffers' sum fits in 62 bits.
ArenaPlan planArena(std::vector<ArenaBuffer> &buffers);

} // namespace dspark
