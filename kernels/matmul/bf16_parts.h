// f32 as a sum of three bf16: x = high + middle + low. Each part is the nearest bf16 of what the parts before
// it leave, so 8 + 8 + 8 bits hold all 24 and the sum is exact, with |middle| <= 2^-8 |x| and |low| <= 2^-16
// |x|. Parts below 2^-126 count as zero in tiles, so numbers below 2^-102 lose what their last part would
// have held.
//
// Products of parts are exact in f32. Of x y nine make the whole; the six whose sizes are at least 2^-16 |x
// y| leave out less than 2^-23 |x y| (two of 2^-24 and one of 2^-32): about two roundings to f32. Infinities
// and NaN stand in the high part alone. Included once per ISA level.
#pragma once
#include "kernels/common/vector_math.h"

namespace dspark {
namespace {

using namespace simd;

constexpr int kParts = 3;

/// The parts' bits, in the upper halves of lanes; the lower halves are 0.
struct Bf16Parts {
  vi high, middle, low;
};

constexpr int32_t kUpperHalf = int32_t(0xffff0000), kInfinityBits = 0x7f800000, kQuietBit = 0x00400000;

/// Ties go to even. Not for NaN.
DSPARK_SIMD vi nearestBf16(vi x) { return (x + 0x7fff + ((x >> 16) & 1)) & kUpperHalf; }

DSPARK_SIMD Bf16Parts partsOf(vf x) {
  vi own = bits(x), magnitude = own & 0x7fffffff, rounded = nearestBf16(own);
  // Of the largest numbers, which would round to infinity, the bits that fit.
  vi cut = (own | (magnitude > kInfinityBits ? vi(kQuietBit) : vi(0))) & kUpperHalf;
  Bf16Parts parts;
  parts.high = (magnitude >= 0x7f7f8000) ? cut : rounded;
  vf rest = magnitude < kInfinityBits ? x - fromBits(parts.high) : splat(0);
  parts.middle = nearestBf16(bits(rest));
  parts.low = bits(rest - fromBits(parts.middle)) & kUpperHalf;
  return parts;
}

} // namespace
} // namespace dspark
