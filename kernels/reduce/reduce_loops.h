// The loops that reductions are made of: scalar ones for every type, and f32's SIMD loops behind the same
// interface. Parts of results are held in f64, integers in 64 bits.
#pragma once
#include "kernels/common/dtype.h"
#include "kernels/reduce/float_reduce.h"
#include <algorithm>
#include <cmath>
#include <type_traits>

namespace dspark::reduce_ops {

inline constexpr int64_t kStripe = 128; // results that lanes fold side by side

/// What parts of results are held in: f64, or for integers their 64-bit type.
template <typename T>
using Part = std::conditional_t<!std::is_integral_v<T>, double,
                                std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <typename P> P identity(Fold fold, DType type) {
  if (fold == Fold::Prod)
    return 1;
  if (fold != Fold::Max && fold != Fold::Min)
    return 0;
  if constexpr (std::is_same_v<P, double>)
    return fold == Fold::Max ? -INFINITY : INFINITY;
  if (type == DType::Bool)
    return fold == Fold::Max ? 0 : 1;
  int bits = dtypeBits(type);
  P low = std::is_signed_v<P> ? P(-(int64_t(1) << (bits - 2)) * 2) : P(0);
  P high = std::is_signed_v<P> ? P(~uint64_t(0) >> (65 - bits)) : P(~uint64_t(0) >> (64 - bits));
  return fold == Fold::Max ? low : high;
}

/// Calls f with the fold as a compile-time constant, so that loops over results have no branch inside.
template <typename F> auto withFold(Fold fold, F f) {
  using enum Fold;
  switch (fold) {
  case Sum:
    return f(std::integral_constant<Fold, Sum>());
  case Abs:
    return f(std::integral_constant<Fold, Abs>());
  case Square:
    return f(std::integral_constant<Fold, Square>());
  case Prod:
    return f(std::integral_constant<Fold, Prod>());
  case Max:
    return f(std::integral_constant<Fold, Max>());
  default:
    return f(std::integral_constant<Fold, Min>());
  }
}

template <Fold kFold, typename P> P join(P a, P b) {
  using U = std::conditional_t<std::is_same_v<P, double>, double, uint64_t>; // integers wrap
  if constexpr (kFold == Fold::Prod)
    return P(U(a) * U(b));
  else if constexpr (kFold == Fold::Max)
    return a > b || a != a ? a : b;
  else if constexpr (kFold == Fold::Min)
    return a < b || a != a ? a : b;
  else
    return P(U(a) + U(b));
}

template <Fold kFold, typename P> P foldOne(P acc, P x) {
  using U = std::conditional_t<std::is_same_v<P, double>, double, uint64_t>;
  if constexpr (kFold == Fold::Abs)
    x = x < 0 ? P(-U(x)) : x;
  else if constexpr (kFold == Fold::Square)
    x = P(U(x) * U(x));
  return join<kFold>(acc, x);
}

/// The scalar loops, for types other than f32.
template <typename T> struct ScalarLoops {
  using P = Part<T>;
  Fold fold;

  P row(const T *x, int64_t n, P acc) const {
    return withFold(fold, [&](auto f) {
      for (int64_t i = 0; i < n; ++i)
        acc = foldOne<f.value>(acc, P(x[i]));
      return acc;
    });
  }
  void lanes(const T *x, int64_t rows, int64_t stride, int64_t width, P *acc) const {
    withFold(fold, [&](auto f) {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < width; ++j)
          acc[j] = foldOne<f.value>(acc[j], P(x[r * stride + j]));
    });
  }
  P expRow(const T *x, int64_t n, P shift, P acc) const {
    for (int64_t i = 0; i < n; ++i)
      acc += P(std::exp(double(x[i]) - double(shift)));
    return acc;
  }
  void expLanes(const T *x, int64_t rows, int64_t stride, int64_t width, const P *shift, P *acc) const {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < width; ++j)
        acc[j] += P(std::exp(double(x[r * stride + j]) - double(shift[j])));
  }
};

/// The same over the SIMD loops: parts of f32 become f64 as they are joined.
struct FloatLoops {
  using P = double;
  Fold fold;
  const FloatReduce &simd;

  double row(const float *x, int64_t n, double acc) const {
    return withFold(fold, [&](auto f) {
      for (; n > 0; x += kFoldRow, n -= kFoldRow)
        acc = join<f.value>(acc, double(simd.row[int(f.value)](x, std::min(n, kFoldRow))));
      return acc;
    });
  }
  void lanes(const float *x, int64_t rows, int64_t stride, int64_t width, double *acc) const {
    float part[kStripe];
    std::fill(part, part + width, float(identity<double>(fold, DType::F32)));
    simd.lanes[int(fold)](x, rows, stride, width, part);
    withFold(fold, [&](auto f) {
      for (int64_t j = 0; j < width; ++j)
        acc[j] = join<f.value>(acc[j], double(part[j]));
    });
  }
  double expRow(const float *x, int64_t n, double shift, double acc) const {
    for (; n > 0; x += kFoldRow, n -= kFoldRow)
      acc += double(simd.expRow(x, std::min(n, kFoldRow), float(shift)));
    return acc;
  }
  void expLanes(const float *x, int64_t rows, int64_t stride, int64_t width, const double *shift,
                double *acc) const {
    float part[kStripe], by[kStripe];
    for (int64_t j = 0; j < width; ++j) {
      part[j] = 0;
      by[j] = float(shift[j]);
    }
    simd.expLanes(x, rows, stride, width, by, part);
    for (int64_t j = 0; j < width; ++j)
      acc[j] += double(part[j]);
  }
};

} // namespace dspark::reduce_ops
