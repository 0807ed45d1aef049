#include "bench/kernels/peak_loops.h"

namespace dspark::bench {
extern double (*const peak_avx512)();
double (*const peak_avx512)() = measurePeak;
extern double (*const integer_peak_avx512)(bool);
double (*const integer_peak_avx512)(bool) = integerPeakOf;
} // namespace dspark::bench
