#include "bench/kernels/peak.h"
#include "kernels/common/bf16_speed.h"
#include <algorithm>

namespace dspark::bench {

extern double (*const peak_baseline)();
extern double (*const peak_avx2)();
extern double (*const peak_avx512)();

extern double (*const integer_peak_baseline)(bool);
extern double (*const integer_peak_avx2)(bool);
extern double (*const integer_peak_avx512)(bool);

extern double (*const byte_peak_amx)();
extern double (*const bf16_peak_amx)();
extern double (*const bf16_peak_avx512)();

double integerPeak(Isa isa, bool isBytes) {
  if (isa == Isa::Amx)
    return byte_peak_amx();
  return isa == Isa::Avx512 ? integer_peak_avx512(isBytes)
         : isa == Isa::Avx2 ? integer_peak_avx2(isBytes)
                            : integer_peak_baseline(isBytes);
}
double multiplyAddPeak(Isa isa) {
  constexpr double kProducts = 6; // in bf16 for one in f32 (kernels/matmul/gemm_tiles.h)
  if (isa == Isa::Amx)
    return std::max(peak_avx512(), bf16_peak_amx() / kProducts);
  return isa == Isa::Avx512 ? peak_avx512() : isa == Isa::Avx2 ? peak_avx2() : peak_baseline();
}
double bf16Peak(Isa isa) {
  return isa == Isa::Amx                          ? bf16_peak_amx()
         : isa == Isa::Avx512 && multipliesBf16() ? bf16_peak_avx512()
                                                  : multiplyAddPeak(isa);
}

} // namespace dspark::bench
