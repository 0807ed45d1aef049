// What a kernel call costs, in numbers that no machine changes: how much arithmetic after padding to register
// tiles, how many loops are started, how many bytes come from where. CostModel.h turns them into seconds.
#pragma once
#include "kernels/common/kernel.h"
#include <array>
#include <string>

namespace dspark {

struct CostFeatures {
  /// Whose coefficients apply: the kernel's name, and what else decides its inner loop (packed layout and
  /// arithmetic, kind of function, mode), e.g. "matmul_packed_avx2/q8_0/int8".
  std::string key;
  double work = 0;     // arithmetic with the padding that kernels compute; a multiply-add counts 2
  double heavy = 0;    // evaluations of exp, tanh, erf, division ...
  double steps = 0;    // of inner loops: rows of a panel that a register tile multiplies, single elements
                       // that a transpose moves
  double starts = 0;   // of inner loops: register tiles, rows
  double moved = 0;    // bytes of results and of operands that other steps make
  double constant = 0; // bytes of weights
  double parts = 1;    // pieces that threads can share, of the phase with most
};

/// The numbers of CostFeatures that coefficients multiply, in order; a call itself is the last one.
inline constexpr int kCostTermCount = 7;
inline constexpr std::array<const char *, kCostTermCount> kCostTermNames = {
    "work", "heavy", "steps", "starts", "moved", "constant", "call"};

/// Of a prepared call. Bit k of `constants`: input k is a weight. Total over all operators: those without
/// rules of their own have rows and bytes.
CostFeatures costFeatures(const Kernel &kernel, const KernelCall &call, const KernelWork &work,
                          uint64_t constants);

} // namespace dspark
