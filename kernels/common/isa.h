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
  Amx,      // those and AMX tiles for 8-bit integers and bf16 (kernels/common/tiles.h)
};
inline constexpr int kIsaCount = 4;
/// Levels with vectors of their own; Amx has those of Avx512.
inline constexpr int kVectorIsaCount = 3;
inline constexpr Isa vectorIsa(Isa isa) { return isa == Isa::Amx ? Isa::Avx512 : isa; }

/// "baseline", "avx2", "avx512", "amx".
std::string_view isaName(Isa isa);
/// False if `name` is no level.
bool isaFromName(std::string_view name, Isa &isa);
/// The best level this machine and its operating system support. Amx needs the system's permission, which the
/// first call asks for: it holds for the whole process and from then on signal frames are 8 KiB larger, so
/// that sigaltstack() refuses stacks below sysconf(_SC_MINSIGSTKSZ). Where DSPARK_ISA names a lower level
/// nobody asks, and the answer is Avx512.
Isa machineIsa();
/// machineIsa(), lowered to the environment variable DSPARK_ISA where that names a lower level.
Isa activeIsa();

} // namespace dspark
