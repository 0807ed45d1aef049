#include "bench/kernels/bandwidth_loops.h"
#include <algorithm>

namespace dspark::bench {

extern const BandwidthLoops kBandwidthBaseline = {readBytes, copyBytes, fillBytes};

Traffic::Traffic(Isa isa, int64_t readBytes, int64_t writtenBytes)
    : isa(vectorIsa(isa)), readBytes(readBytes), writtenBytes(writtenBytes),
      from(size_t(readBytes / 4 + 16), 1.0f), to(size_t(writtenBytes / 4 + 16), 1.0f) {}

void Traffic::run() {
  const BandwidthLoops &loops = isa == Isa::Avx512 ? kBandwidthAvx512
                                : isa == Isa::Avx2 ? kBandwidthAvx2
                                                   : kBandwidthBaseline;
  int64_t both = std::min(readBytes, writtenBytes);
  loops.copy(from.data(), to.data(), both);
  volatile float sink = loops.read(from.data() + both / 4, readBytes - both);
  (void)sink;
  loops.fill(to.data() + both / 4, writtenBytes - both);
}

} // namespace dspark::bench
