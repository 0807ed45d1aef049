#include "kernels/common/isa.h"
#include <algorithm>
#include <cpuid.h>
#include <cstdlib>
#include <optional>
#include <sys/syscall.h>
#include <unistd.h>

namespace dspark {
namespace {

constexpr std::string_view kNames[kIsaCount] = {"baseline", "avx2", "avx512", "amx"};

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};
Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}
bool hasBits(unsigned value, unsigned bits) { return (value & bits) == bits; }

// XCR0: which register files the operating system saves.
unsigned savedState() {
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// The level that DSPARK_ISA names, if it names one.
std::optional<Isa> namedLevel() {
  const char *name = std::getenv("DSPARK_ISA");
  Isa isa;
  if (!name || !isaFromName(name, isa))
    return std::nullopt;
  return isa;
}

// Eight tiles of 16 rows by 64 bytes, palette 1, with both kinds of products; both parts of their state are
// saved.
bool hasTiles(const Registers &seven) {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25, kTileState = 3u << 17;
  if (!hasBits(seven.edx, kBf16 | kTile | kInt8) || !hasBits(savedState(), kTileState))
    return false;
  constexpr unsigned kTileLeaf = 0x1d;
  Registers palette = cpuid(kTileLeaf, 1);
  unsigned bytesPerTile = palette.eax >> 16, bytesPerRow = palette.ebx & 0xffff, tiles = palette.ebx >> 16,
           rows = palette.ecx & 0xffff;
  return cpuid(kTileLeaf, 0).eax >= 1 && bytesPerTile >= 1024 && bytesPerRow >= 64 && tiles >= 8 &&
         rows >= 16;
}

// Linux saves tiles only for processes that asked (arch_prctl, since 5.16). Threads and forked children have
// what their process was given; a program that is executed asks again.
bool mayUseTiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

Isa detect() {
  Registers one = cpuid(1, 0), seven = cpuid(7, 0);
  constexpr unsigned kOsxsave = 1u << 27, kAvx = 1u << 28, kFma = 1u << 12, kF16c = 1u << 29;
  if (!hasBits(one.ecx, kOsxsave | kAvx | kFma | kF16c) || !hasBits(savedState(), 0x6))
    return Isa::Baseline;
  constexpr unsigned kAvx2 = 1u << 5, kBmi2 = 1u << 8;
  if (!hasBits(seven.ebx, kAvx2 | kBmi2))
    return Isa::Baseline;
  constexpr unsigned kF = 1u << 16, kDq = 1u << 17, kBw = 1u << 30, kVl = 1u << 31, kVnni = 1u << 11;
  if (!hasBits(seven.ebx, kF | kDq | kBw | kVl) || !hasBits(seven.ecx, kVnni) || !hasBits(savedState(), 0xe6))
    return Isa::Avx2;
  return namedLevel().value_or(Isa::Amx) == Isa::Amx && hasTiles(seven) && mayUseTiles() ? Isa::Amx
                                                                                         : Isa::Avx512;
}

} // namespace

std::string_view isaName(Isa isa) { return kNames[int(isa)]; }

bool isaFromName(std::string_view name, Isa &isa) {
  for (int i = 0; i < kIsaCount; ++i)
    if (kNames[i] == name) {
      isa = Isa(i);
      return true;
    }
  return false;
}

Isa machineIsa() {
  static const Isa isa = detect();
  return isa;
}

Isa activeIsa() {
  static const Isa isa = std::min(namedLevel().value_or(machineIsa()), machineIsa());
  return isa;
}

} // namespace dspark
