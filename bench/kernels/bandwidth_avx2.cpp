#include "bench/kernels/bandwidth_loops.h"

namespace dspark::bench {
extern const BandwidthLoops kBandwidthAvx2 = {readBytes, copyBytes, fillBytes};
} // namespace dspark::bench
