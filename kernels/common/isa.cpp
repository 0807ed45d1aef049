#include "kernels/common/isa.h"
#include <algorithm>
#include <cpuid.h>
#include <cstdlib>

namespace dspark {
namespace {

constexpr std::string_view kNames[kIsaCount] = {"baseline", "avx2", "avx512"};

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

Isa detect() {
  Registers one = cpuid(1, 0), seven = cpuid(7, 0);
  constexpr unsigned kOsxsave = 1u << 27, kAvx = 1u << 28, kFma = 1u << 12, kF16c = 1u << 29;
  if (!hasBits(one.ecx, kOsxsave | kAvx | kFma | kF16c) || !hasBits(savedState(), 0x6))
    return Isa::Baseline;
  constexpr unsigned kAvx2 = 1u << 5, kBmi2 = 1u << 8;
  if (!hasBits(seven.ebx, kAvx2 | kBmi2))
    return Isa::Baseline;
  constexpr unsigned kF = 1u << 16, kDq = 1u << 17, kBw = 1u << 30, kVl = 1u << 31, kVnni = 1u << 11;
  if (hasBits(seven.ebx, kF | kDq | kBw | kVl) && hasBits(seven.ecx, kVnni) && hasBits(savedState(), 0xe6))
    return Isa::Avx512;
  return Isa::Avx2;
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
  static const Isa isa = [] {
    Isa cap = machineIsa();
    if (const char *name = std::getenv("DSPARK_ISA"))
      isaFromName(name, cap);
    return std::min(cap, machineIsa());
  }();
  return isa;
}

} // namespace dspark
