// What becomes of the sums of igemm.h, included once per ISA level.
#pragma once
#include "kernels/common/contract.h"
#include "kernels/common/narrow_bytes.h"
#include "kernels/matmul/activate_loops.h"
#include "kernels/matmul/igemm.h"

namespace dspark {
namespace {

constexpr int kSumVectors = int(kIntegerColumns) / simd::kLanes;
typedef simd::vi SumRow[kSumVectors]; // one row's sums of a panel

// Rows of a result that has all 16 columns, from sums in registers.
class ResultRows {
public:
  explicit DSPARK_SIMD ResultRows(const SumsResult &result) : to(result), narrow(result.range) {}

  DSPARK_SIMD void toFloats(const SumRow &sums, int64_t r) const {
    simd::vf value[kSumVectors];
    scale(sums, value);
    if (to.residual)
#pragma clang loop unroll(full)
      for (int v = 0; v < kSumVectors; ++v)
        value[v] += simd::load(to.residual + r * to.stride + v * simd::kLanes);
    activate(value);
    __builtin_memcpy(to.floats + r * to.stride, value, sizeof(value));
  }
  DSPARK_SIMD void toBytes(const SumRow &sums, int64_t r) const {
    simd::vf value[kSumVectors];
    scale(sums, value);
    __m128i bytes = narrow(value);
    __builtin_memcpy(to.bytes + r * to.stride, &bytes, sizeof(bytes));
  }

private:
  // Bounds in registers, other functions, which would be too much code beside every product, by way of
  // memory.
  DSPARK_SIMD void activate(simd::vf (&value)[kSumVectors]) const {
    using namespace simd;
    switch (to.epilogue.activation) {
    case Activation::None:
      return;
    case Activation::Relu:
#pragma clang loop unroll(full)
      for (int v = 0; v < kSumVectors; ++v)
        value[v] = select(splat(0) > value[v], splat(0), value[v]);
      return;
    case Activation::Clip:
#pragma clang loop unroll(full)
      for (int v = 0; v < kSumVectors; ++v)
        value[v] = clamp(value[v], splat(to.epilogue.alpha), splat(to.epilogue.beta));
      return;
    default:
      alignas(64) float row[kIntegerColumns];
      __builtin_memcpy(row, value, sizeof(row));
      activateBuffer(row, kIntegerColumns, to.epilogue);
      __builtin_memcpy(value, row, sizeof(row));
    }
  }

  // sum * scale + offset
  DSPARK_SIMD void scale(const SumRow &sums, simd::vf (&value)[kSumVectors]) const {
    using namespace simd;
    typedef int32_t viUnaligned __attribute__((ext_vector_type(kLanes), aligned(4)));
#pragma clang loop unroll(full)
    for (int v = 0; v < kSumVectors; ++v) {
      vi sum = sums[v] + *reinterpret_cast<const viUnaligned *>(to.bias + v * kLanes);
      value[v] =
          __builtin_convertvector(sum, vf) * load(to.scale + v * kLanes) + load(to.offset + v * kLanes);
    }
  }

  const SumsResult to; // a copy, which stores to y cannot change
  const simd::ByteNarrowing narrow;
};

// Rows of sums in memory; columns may be missing.
inline void finishSums(const int32_t *sums, const SumsResult &to) {
  alignas(64) std::byte row[kIntegerColumns * sizeof(float)];
  alignas(64) float residual[kIntegerColumns] = {};
  bool isFull = to.columns == kIntegerColumns;
  size_t size = to.floats ? sizeof(float) : 1;
  SumsResult into = to;
  if (!isFull) {
    into.bytes = row;
    into.floats = to.floats ? reinterpret_cast<float *>(row) : nullptr;
    into.residual = to.residual ? residual : nullptr;
  }
  ResultRows rows(into);
  for (int64_t r = 0; r < to.rows; ++r, sums += kIntegerColumns) {
    SumRow values;
    __builtin_memcpy(&values, sums, sizeof(values));
    if (!isFull && to.residual)
      __builtin_memcpy(residual, to.residual + r * to.stride, size_t(to.columns) * sizeof(float));
    if (to.floats)
      rows.toFloats(values, isFull ? r : 0);
    else
      rows.toBytes(values, isFull ? r : 0);
    if (!isFull)
      __builtin_memcpy(to.bytes + size_t(r * to.stride) * size, row, size_t(to.columns) * size);
  }
}

inline void expectTile([[maybe_unused]] const IgemmTile &tile) {
  DSPARK_EXPECTS(tile.k >= 0 && tile.panels >= 0 && tile.panels <= kIntegerPanels);
  DSPARK_EXPECTS(isReadable(tile.a, tile.rows * tile.k) && isReadable(tile.aZero, tile.rows));
  DSPARK_EXPECTS(isReadable(tile.b, tile.panels) && isReadable(tile.c, tile.panels * tile.rows));
}

// A tile whose sums go through memory, panel by panel by way of the L1 or L2 cache.
template <void (*sumTile)(const IgemmTile &)> void finishedTile(const IgemmTile &tile) {
  expectTile(tile);
  sumTile(tile);
  for (int64_t p = 0; tile.results && p < tile.panels; ++p)
    finishSums(tile.c + p * tile.rows * kIntegerColumns, tile.results[p]);
}

} // namespace
} // namespace dspark
