// Writes weights of few bits in the packed layout (kernels/matmul/packed_format.h), from the forms in which
// models hold them. Nothing is rounded: unpacking gives exactly the source format's dequantisation. The
// compiler calls these while it writes a plan, one weight at a time.
#pragma once
#include "kernels/common/dtype.h"
#include "kernels/matmul/packed_format.h"
#include "runtime/base/Status.h"
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dspark {

/// One column's terms of one block, as PackedFormat describes it.
struct BlockValues {
  std::vector<uint8_t> codes;  // blockTerms; unused beyond k
  std::vector<uint32_t> scale; // groupsPerBlock: bits of the stored scales, or the bytes of Super kinds
  std::vector<uint32_t> zero;  // groupsPerBlock: bits of the stored zeros; the bytes of SuperU8's minima
  uint32_t factor = 0, minFactor = 0; // f16 bits, of the Super kinds
};

/// Where a packer finds its blocks.
class BlockSource {
public:
  virtual ~BlockSource() = default;
  virtual void read(int64_t column, int64_t block, BlockValues &values) const = 0;
};

/// `out` must have exactly format.bytes(k, n). With `isGated`, columns [0, n/2) and [n/2, n) are the gate and
/// the other factor of a gated product, and their panels alternate; `out` then has gatedBytes().
Status packBlocks(const PackedFormat &format, int64_t k, int64_t n, const BlockSource &source,
                  std::span<std::byte> out, bool isGated = false);
std::optional<int64_t> gatedBytes(const PackedFormat &format, int64_t k, int64_t n);

/// Rows of GGUF blocks: [n][k / block] of `type` ("q4_0" ... "nvfp4"), which is the layout's name too.
Status packGguf(std::string_view type, int64_t k, int64_t n, std::span<const std::byte> source,
                std::span<std::byte> out, bool isGated = false);
/// Bytes of such rows, or why there are none.
StatusOr<int64_t> ggufBytes(std::string_view type, int64_t k, int64_t n);

/// Floats [n][k] (or [k][n]) as the layout of their type: "f16", "bf16" or "f32".
Status packFloats(std::string_view layout, int64_t k, int64_t n, bool isTransposed,
                  std::span<const std::byte> source, std::span<std::byte> out, bool isGated = false);

/// Integers with a scale per group of terms, the way ONNX's MatMulNBits, GPTQ and AWQ store them.
struct GroupedWeight {
  enum class Form {
    NBits, // codes [n][blocks][group * bits / 8], lowest bits first; scales [n][blocks]; zeros [n][blocks],
           // packed per row like codes, or of the scales' type
    Gptq,  // codes i32 [k * bits / 32][n], zeros i32 [groups][n * bits / 32], scales [groups][n]
    Awq,   // codes i32 [k][n / 8], zeros i32 [groups][n / 8], nibbles in the order 0 2 4 6 1 3 5 7
  };
  Form form = Form::NBits;
  int bits = 4;       // 2, 4 or 8; GPTQ 3 too
  int64_t group = 32; // terms per scale
  int64_t k = 0, n = 0;
  DType scaleType = DType::F16;
  bool hasZeros = false, zerosAreValues = false; // values: of the scales' type
  int zeroShift = 0;                             // added to each stored zero, modulo 2^bits (GPTQ v1: 1)

  /// The packed layout's name, or why there is none.
  StatusOr<std::string> layout() const;
};
struct GroupedBytes {
  std::span<const std::byte> codes, scales, zeros;
  /// The group of each term (g_idx), i32; empty: term / group. Terms are then packed in groupOrder().
  std::span<const std::byte> groupOfTerm;
};
/// Whether the spans have the sizes that the weight demands; reads none of them.
Status checkGrouped(const GroupedWeight &weight, const GroupedBytes &bytes);
Status packGrouped(const GroupedWeight &weight, const GroupedBytes &bytes, std::span<std::byte> out);
/// What packGrouped packs, for packBlocks of some columns or of several weights. The spans must outlive it.
StatusOr<std::unique_ptr<BlockSource>> groupedSource(const GroupedWeight &weight, const GroupedBytes &bytes);

/// The terms in the order in which they are packed when their groups are scattered: stable by group. A
/// product takes its rows' terms in that order. InvalidArgument unless every group has `group` terms (the
/// last one what is left).
StatusOr<std::vector<int64_t>> groupOrder(std::span<const std::byte> groupOfTerm, int64_t k, int64_t group);

} // namespace dspark
