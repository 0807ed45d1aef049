// The measurement behind multipliesBf16().
#include <immintrin.h>
#include <x86intrin.h>

namespace dspark {
namespace {

constexpr int kChains = 12, kSteps = 200, kTurns = 9;

// Cycles of the time-stamp counter that kChains x kSteps instructions take. The empty asm keeps the compiler
// from working anything out.
template <typename Step> unsigned long long cyclesOf(Step step) {
  __m512 sums[kChains] = {};
  unsigned long long begin = __rdtsc();
  for (int i = 0; i < kSteps; ++i)
#pragma clang loop unroll(full)
    for (int c = 0; c < kChains; ++c) {
      sums[c] = step(sums[c]);
      asm volatile("" : "+v"(sums[c]));
    }
  return __rdtsc() - begin;
}

} // namespace

bool isBf16Fast(); // for machines with AVX-512 BF16

// Chains of vdpbf16ps and of multiply-adds by turns, some 50 us together.
bool isBf16Fast() {
  const __m512bh pairs = (__m512bh)_mm512_set1_epi16(0x3f80);
  const __m512 one = _mm512_set1_ps(1);
  unsigned long long dots = ~0ull, adds = ~0ull;
  for (int turn = 0; turn < kTurns; ++turn) { // the fastest of each, as others may interrupt
    auto dot = cyclesOf([&](__m512 sum) { return _mm512_dpbf16_ps(sum, pairs, pairs); });
    auto add = cyclesOf([&](__m512 sum) { return _mm512_fmadd_ps(one, one, sum); });
    dots = dot < dots ? dot : dots;
    adds = add < adds ? add : adds;
  }
  return dots < adds + adds / 2; // one is two multiply-adds
}

} // namespace dspark
