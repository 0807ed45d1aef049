// Rows of A as bf16 (SplitRows in packed.h). Included once per ISA level.
#pragma once
#include "kernels/matmul/bf16_parts.h"
#include "kernels/matmul/packed.h"

namespace dspark {
namespace {

typedef uint16_t vbf16 __attribute__((ext_vector_type(kLanes), aligned(2))); // bits

// One row's parts, one after the other, each filled up with zeros to whole steps.
void splitRow(const float *row, int64_t k, const SplitRows &out) {
  int64_t perPart = SplitRows::partElements(k);
  uint16_t *to = out.parts;
  for (int64_t at = 0; at < perPart; at += kLanes, to += kLanes) {
    int64_t left = k - at < kLanes ? k - at : kLanes;
    Bf16Parts parts = partsOf(left == kLanes ? load(row + at) : loadLanes(row + at, left > 0 ? left : 0));
    const vi all[kParts] = {parts.high, parts.middle, parts.low};
    for (int p = 0; p < out.count; ++p)
      *reinterpret_cast<vbf16 *>(to + p * perPart) = __builtin_convertvector(all[p] >> 16, vbf16);
  }
}

} // namespace
} // namespace dspark
