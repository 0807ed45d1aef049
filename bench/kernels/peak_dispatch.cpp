#include "bench/kernels/peak.h"

namespace dspark::bench {

extern double (*const peak_baseline)();
extern double (*const peak_avx2)();
extern double (*const peak_avx512)();

extern double (*const integer_peak_baseline)(bool);
extern double (*const integer_peak_avx2)(bool);
extern double (*const integer_peak_avx512)(bool);

double integerPeak(Isa isa, bool isBytes) {
  return isa == Isa::Avx512 ? integer_peak_avx512(isBytes)
         : isa == Isa::Avx2 ? integer_peak_avx2(isBytes)
                            : integer_peak_baseline(isBytes);
}
double multiplyAddPeak(Isa isa) {
  return isa == Isa::Avx512 ? peak_avx512() : isa == Isa::Avx2 ? peak_avx2() : peak_baseline();
}

} // namespace dspark::bench
