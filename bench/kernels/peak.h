// The multiply-add peak of one core: twelve independent chains, which is more than latency times issue width.
#pragma once
#include "kernels/common/isa.h"
#include <ctime>

namespace dspark::bench {

/// Time that this thread has had on a core: what others take away does not count.
inline double threadSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

/// FLOP/s of this level's vectors over about 0.2 ms, the best of four. Level Amx: of its products in f32, six
/// in bf16 for each, where those are more than its vectors do.
double multiplyAddPeak(Isa isa);
/// The same of 8-bit products added up in 32 bits: by pairs of 16-bit products, which is exact below VNNI, or
/// by the u8 x s8 instruction, which saturates there; level Amx has only the latter, by tiles.
double integerPeak(Isa isa, bool isBytes);
/// The same of products of bf16 added in f32: by vdpbf16ps where multipliesBf16(), by tiles at level Amx,
/// else by multiply-adds.
double bf16Peak(Isa isa);

} // namespace dspark::bench
