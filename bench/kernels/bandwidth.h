// The time that a traffic of bytes takes at least: plain vector loops over buffers of the same size, so that
// a kernel's share of it is a share of the cache or memory in which its operands fit.
#pragma once
#include "kernels/common/isa.h"
#include <vector>

namespace dspark::bench {

class Traffic {
public:
  Traffic(Isa isa, int64_t readBytes, int64_t writtenBytes);
  /// Reads and writes that many bytes once.
  void run();

private:
  Isa isa;
  int64_t readBytes, writtenBytes;
  std::vector<float> from, to;
};

struct BandwidthLoops {
  float (*read)(const float *from, int64_t bytes);
  void (*copy)(const float *from, float *to, int64_t bytes);
  void (*fill)(float *to, int64_t bytes);
};
extern const BandwidthLoops kBandwidthBaseline, kBandwidthAvx2, kBandwidthAvx512;

} // namespace dspark::bench
