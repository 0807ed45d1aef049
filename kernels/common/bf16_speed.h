// Whether products of bf16 by AVX-512 pay.
#pragma once

namespace dspark {

/// Whether vdpbf16ps (AVX-512 BF16) is faster than multiply-adds of f32: CPUID names the instruction, and it
/// was measured once in this process, since it runs at twice the speed of f32's on Zen 4 and at half of it on
/// Intel's machines with AMX. False where machineIsa() is below Avx512.
bool multipliesBf16();

} // namespace dspark
