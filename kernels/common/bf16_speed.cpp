#include "kernels/common/bf16_speed.h"
#include "kernels/common/isa.h"

namespace dspark {

bool isBf16Fast(); // bf16_speed_avx512bf16.cpp

bool multipliesBf16() {
  static const bool isFast =
      machineIsa() >= Isa::Avx512 && __builtin_cpu_supports("avx512bf16") && isBf16Fast();
  return isFast;
}

} // namespace dspark
