// Packed layouts of constant weights: what the `packed` attribute of a step names. The compiler packs one
// weight at a time while it writes the plan; kernels read the result; tests compare both. One layout serves
// every ISA level: a panel row is 16 columns, that is one AVX-512, two AVX or four SSE vectors.
//
//   panel16    B[K, N] of f32 or 8-bit elements as [ceil(N/16)][K][16], columns beyond N zero. A
//   convolution's weights have
//              that per group, with K ordered (spatial..., input channels)
//   panel16k4  B[K, N] of 8-bit elements as [ceil(N/16)] of [ceil(K/4)][16][4] signed bytes, everything
//   beyond K
//              and N zero, and the sums of the 16 columns as i32. A convolution's weights as in panel16
//   f16, bf16  B[K, N] of 16-bit elements, see kernels/matmul/packed_format.h; so are all layouts of fewer
//              bits, which PackedBits.h writes
//   bf16       of a convolution's f32 weights: per group [ceil(N/16)][spatial...][ceil(I/2)][16][2] of the
//              nearest bf16, input channels in pairs, the last one filled up with zeros; columns beyond N
//              zero
//   depthwise  weights of a depthwise convolution as [spatial...][channels]; 8-bit ones are signed
//
// Unsigned bytes become signed by taking 128 off, so that kernels know one kind.
#pragma once
#include "runtime/base/Status.h"
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dspark {

/// A matrix product's B, row-major: [batch, K, N], or [batch, N, K] when transposed.
struct MatrixWeight {
  int64_t batch = 1;
  int64_t k = 0, n = 0;
  bool isTransposed = false;
  int64_t elementBytes = 4; // 4, 2 or 1
  bool isSigned = true;     // matters to panel16k4
};

/// A convolution's weights, row-major: [outputs, inputs / group, spatial...], for a transposed convolution
/// [inputs, outputs / group, spatial...].
struct ConvWeight {
  int64_t group = 1;
  int64_t inputs = 0, outputs = 0; // channels of all groups together
  int64_t spatial = 1;             // taps of one filter
  bool isTransposed = false;
  int64_t elementBytes = 4; // 4 or 1
  bool isSigned = true;     // of bytes
};

/// Bytes of the packed form; InvalidArgument if the layout does not exist for that element size or the
/// product of sizes overflows.
StatusOr<uint64_t> packedBytes(std::string_view layout, const MatrixWeight &weight);
StatusOr<uint64_t> packedBytes(std::string_view layout, const ConvWeight &weight);

/// Packs `source`, which must have exactly the weight's bytes, into `packed` of packedBytes() bytes.
Status packWeight(std::string_view layout, const MatrixWeight &weight, std::span<const std::byte> source,
                  std::span<std::byte> packed);
Status packWeight(std::string_view layout, const ConvWeight &weight, std::span<const std::byte> source,
                  std::span<std::byte> packed);

/// The layout bf16 of a convolution's weights that are packed as panel16; spans as packedBytes() says.
Status roundPanels(const ConvWeight &weight, std::span<const std::byte> panels, std::span<std::byte> packed);

} // namespace dspark
