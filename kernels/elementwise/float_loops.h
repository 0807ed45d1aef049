// Loops over contiguous f32 blocks, one per kind of elementwise operation, compiled once per ISA level. The
// elementwise kernels and the interpreter of fused regions are built on them; an output may be one of the
// inputs. Each element's result depends on its operands only, never on its place in the block.
#pragma once
#include "kernels/common/isa.h"
#include "kernels/elementwise/kinds.h"
#include <cstdint>

namespace dspark {

using UnaryLoop = void (*)(const float *x, float *y, int64_t n, float alpha, float beta);
using BinaryLoop = void (*)(const float *a, const float *b, float *y, int64_t n);
using CompareLoop = void (*)(const float *a, const float *b, uint8_t *y, int64_t n);
/// lo and hi are bounds that apply to every element.
using ClipLoop = void (*)(const float *x, float *y, int64_t n, float lo, float hi);
/// `condition` is != 0 to choose a.
using SelectLoop = void (*)(const float *condition, const float *a, const float *b, float *y, int64_t n);

/// Which operands of a binary loop are a single element instead of a block.
enum OperandForm { kBothBlocks, kScalarB, kScalarA, kFormCount };

struct FloatLoops {
  /// Null for kinds that have no meaning on f32. Logical kinds read != 0 and make 1 or 0.
  UnaryLoop unary[int(UnaryKind::kCount)];
  BinaryLoop binary[int(BinaryKind::kCount)][kFormCount];
  BinaryLoop compareAsFloat[int(CompareKind::kCount)][kFormCount]; // 1 or 0
  CompareLoop compare[int(CompareKind::kCount)][kFormCount];
  ClipLoop clip;
  SelectLoop select;
  void (*boolToFloat)(const uint8_t *x, float *y, int64_t n);
  void (*f16ToFloat)(const uint16_t *x, float *y, int64_t n);
  void (*floatToF16)(const float *x, uint16_t *y, int64_t n);
  void (*bf16ToFloat)(const uint16_t *x, float *y, int64_t n);
  void (*floatToBf16)(const float *x, uint16_t *y, int64_t n);
};

extern const FloatLoops kFloatLoopsBaseline, kFloatLoopsAvx2, kFloatLoopsAvx512;

inline const FloatLoops &floatLoops(Isa isa) {
  return isa == Isa::Avx512 ? kFloatLoopsAvx512 : isa == Isa::Avx2 ? kFloatLoopsAvx2 : kFloatLoopsBaseline;
}

} // namespace dspark
