// Instruction-set levels. Each kernel row names the level it was compiled for; the runtime picks the best row
// that the machine has (CPUID bits, never a model name) and that DSPARK_ISA allows.
#pragma once
#include <cstdint>
#include <string_view>

namespace dspark {

enum class Isa : uint8_t {
  Baseline, // x86-64: SSE2
  Avx2,     // AVX2, FMA, F16C, BMI2
  Avx512,   // AVX-512 F, BW, VL, DQ and VNNI
};
inline constexpr int kIsaCount = 3;

/// "baseline", "avx2", "avx512".
std::string_view isaName(Isa isa);
/// False if `name` is no level.
bool isaFromName(std::string_view name, Isa &isa);
/// The best level this machine and its kernel support.
Isa machineIsa();
/// machineIsa(), lowered to the environment variable DSPARK_ISA where that names a lower level.
Isa activeIsa();

} // namespace dspark
