#include "bench/kernels/peak_loops.h"

namespace dspark::bench {
extern double (*const peak_avx512)();
double (*const peak_avx512)() = measurePeak;
} // namespace dspark::bench
