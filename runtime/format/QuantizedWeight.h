// Rounds f32 weights to fewer bits and packs them (PackedBits.h): round to nearest, one scale per group of a
// column's terms. Unlike everything else that packs, this loses something; callers measure how much.
#pragma once
#include "runtime/base/Status.h"
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dspark {

/// Whether packQuantized() knows the layout: "f16", "bf16", int<bits>_g<group or "row">_f32 without zero
/// points.
bool isQuantizedLayout(std::string_view layout);

/// Bytes of a matrix [k, n]; InvalidArgument for layouts that packQuantized() does not know.
StatusOr<uint64_t> quantizedBytes(std::string_view layout, int64_t k, int64_t n);

/// Packs B = [k, n] (or [n, k] when transposed) into exactly quantizedBytes(). Scales of codes below 8 bits
/// are those of a few clipped ranges with the least squared error. NaN becomes 0; infinities make their
/// group's scale infinite.
Status packQuantized(std::string_view layout, int64_t k, int64_t n, bool isTransposed,
                     std::span<const float> source, std::span<std::byte> out);

} // namespace dspark
