// How a stub device behaves: a JSON file that docs/devices.md describes.
#pragma once
#include "kernels/common/isa.h"
#include "runtime/base/Status.h"
#include <cstdint>
#include <string>
#include <vector>

namespace dspark {

/// The steps of an operator that the device supports, and how fast it is at them.
struct StubRow {
  std::string op;                                // "*": every one
  std::vector<std::string> types;                // of all operands and results; empty: any
  std::vector<std::string> packed;               // forms of a packed operand; empty: any, and none
  double flopsPerSecond = 0, bytesPerSecond = 0; // 0: takes no time
  double launch = 0;                             // seconds
};

/// Something that goes wrong while `from` <= launches so far < `until`.
struct StubFault {
  enum class Kind { Slow, SlowLink, Fault, Hang, Memory } kind = Kind::Fault;
  uint64_t from = 0, until = UINT64_MAX;
  double factor = 1;  // of Slow and SlowLink
  uint64_t bytes = 0; // of Memory: what is there instead

  bool isNow(uint64_t launches) const { return from <= launches && launches < until; }
};

struct StubConfig {
  uint64_t memory = uint64_t(1) << 30;
  uint64_t claimedMemory = 0; // what the device says of it; 0: the truth
  double linkLatency = 0, inPerSecond = 1e10, outPerSecond = 1e10;
  std::vector<StubRow> rows;
  std::vector<StubFault> faults;
  std::string onOpen;      // "", "crash", "hang" or "fail"
  double noise = 0;        // times are up to that fraction longer or shorter
  uint64_t seed = 0;       // of the noise
  bool takesTime = false;  // whether commands last as long as they say; else they only say so
  Isa isa = Isa::Baseline; // of the kernels that compute

  /// CorruptFile names the file, the key and what was expected; "" is a file: a device that supports
  /// everything.
  static StatusOr<StubConfig> load(const std::string &path);
  /// The list `faults` alone, as JSON text.
  static StatusOr<std::vector<StubFault>> parseFaults(const std::string &text);
};

} // namespace dspark
