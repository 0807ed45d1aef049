#include "bench/kernels/peak_loops.h"

namespace dspark::bench {
extern double (*const peak_avx2)();
double (*const peak_avx2)() = measurePeak;
} // namespace dspark::bench
