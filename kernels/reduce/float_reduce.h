// The inner loops of f32 reductions, one table per ISA level (float_reduce_impl.h is compiled three times).
#pragma once
#include "kernels/common/isa.h"
#include <cstdint>

namespace dspark::reduce_ops {

/// What is folded into one number: values, their magnitudes or their squares.
enum class Fold : uint8_t { Sum, Abs, Square, Prod, Max, Min };
inline constexpr int kFoldCount = 6;

/// Elements that one call of `row` may fold: its lanes then add at most 128 terms each in sequence at AVX2,
/// so the error of a sum is near that of pairwise summation. Callers add the parts in f64.
inline constexpr int64_t kFoldRow = 4096;

/// Elements of a row that `shortRows` may fold: beyond, one row at a time is as fast.
inline constexpr int64_t kShortRow = 64;

struct FloatReduce {
  /// Folds n contiguous elements; 0 < n <= kFoldRow.
  float (*row[kFoldCount])(const float *x, int64_t n);
  /// acc[j] = fold(acc[j], x[r * stride + j]) for r < rows, j < width.
  void (*lanes[kFoldCount])(const float *x, int64_t rows, int64_t stride, int64_t width, float *acc);
  /// y[r] = fold of the n elements from x[r * n] on, rows side by side in lanes; 0 < n <= kShortRow.
  void (*shortRows[kFoldCount])(const float *x, int64_t rows, int64_t n, float *y);
  /// The sum of exp(x - shift); 0 < n <= kFoldRow.
  float (*expRow)(const float *x, int64_t n, float shift);
  /// acc[j] += exp(x[r * stride + j] - shift[j]).
  void (*expLanes)(const float *x, int64_t rows, int64_t stride, int64_t width, const float *shift,
                   float *acc);
};

extern const FloatReduce kFloatReduceBaseline, kFloatReduceAvx2, kFloatReduceAvx512;

} // namespace dspark::reduce_ops
