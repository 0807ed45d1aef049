#include "bench/kernels/peak_loops.h"

namespace dspark::bench {
extern double (*const peak_baseline)();
double (*const peak_baseline)() = measurePeak;
} // namespace dspark::bench
