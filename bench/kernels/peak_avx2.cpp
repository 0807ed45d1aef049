#include "bench/kernels/peak_loops.h"

namespace dspark::bench {
extern double (*const peak_avx2)();
double (*const peak_avx2)() = measurePeak;
extern double (*const integer_peak_avx2)(bool);
double (*const integer_peak_avx2)(bool) = integerPeakOf;
} // namespace dspark::bench
