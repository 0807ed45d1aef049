#include "bench/kernels/peak_loops.h"

namespace dspark::bench {
extern double (*const peak_baseline)();
double (*const peak_baseline)() = measurePeak;
extern double (*const integer_peak_baseline)(bool);
double (*const integer_peak_baseline)(bool) = integerPeakOf;
} // namespace dspark::bench
