#include "bench/kernels/peak.h"

namespace dspark::bench {

extern double (*const peak_baseline)();
extern double (*const peak_avx2)();
extern double (*const peak_avx512)();

double multiplyAddPeak(Isa isa) {
  return isa == Isa::Avx512 ? peak_avx512() : isa == Isa::Avx2 ? peak_avx2() : peak_baseline();
}

} // namespace dspark::bench
