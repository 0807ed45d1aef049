// The loops behind attention_core.h; everything here has internal linkage, as it is compiled for several ISA
// levels.
#pragma once
#include "kernels/attention/attention_core.h"

namespace dspark {
namespace {

constexpr int kLanes = kAttentionLanes;
template <typename A> struct LanesOf {
  typedef A Type __attribute__((vector_size(kLanes * sizeof(A)), aligned(alignof(A))));
  typedef int32_t Int __attribute__((vector_size(kLanes * sizeof(int32_t))));
};
template <typename A> using Lanes = typename LanesOf<A>::Type;

template <typename A> inline Lanes<A> load(const A *p) { return *reinterpret_cast<const Lanes<A> *>(p); }
template <typename A> inline void store(A *p, Lanes<A> v) { *reinterpret_cast<Lanes<A> *>(p) = v; }

template <typename A> inline Lanes<A> multiplyAdd(Lanes<A> a, Lanes<A> b, Lanes<A> c) {
#ifdef __FMA__
  return __builtin_elementwise_fma(a, b, c);
#else
  return a * b + c;
#endif
}
template <typename A> inline A sum(Lanes<A> v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}
template <typename A> inline const A *rowAt(const AttentionRows<A> &rows, int64_t j) {
  return j < rows.pastCount ? rows.past + j * rows.pastStride
                            : rows.fresh + (j - rows.pastCount) * rows.freshStride;
}

template <typename A, int R>
void scoreRows(const A *q, int64_t size, const AttentionRows<A> &keys, int64_t begin, int64_t end, A *scores,
               int64_t stride) {
  for (int64_t j = begin; j < end; ++j) {
    const A *key = rowAt(keys, j);
    Lanes<A> acc[R] = {};
    int64_t d = 0;
    for (; d + kLanes <= size; d += kLanes) {
      Lanes<A> k = load(key + d);
      for (int r = 0; r < R; ++r)
        acc[r] = multiplyAdd<A>(load(q + r * size + d), k, acc[r]);
    }
    for (int r = 0; r < R; ++r) {
      A total = sum<A>(acc[r]);
      for (int64_t t = d; t < size; ++t)
        total += q[r * size + t] * key[t];
      scores[r * stride + j] = total;
    }
  }
}

template <typename A, int R>
void valueRows(const A *p, int64_t stride, const AttentionRows<A> &values, int64_t begin, int64_t end,
               int64_t width, A *out) {
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) {
    Lanes<A> acc[R] = {};
    for (int64_t j = begin; j < end; ++j) {
      Lanes<A> v = load(rowAt(values, j) + c);
      for (int r = 0; r < R; ++r)
        acc[r] = multiplyAdd<A>(v, p[r * stride + j] - Lanes<A>{}, acc[r]);
    }
    for (int r = 0; r < R; ++r)
      store(out + r * width + c, acc[r]);
  }
  for (; c < width; ++c)
    for (int r = 0; r < R; ++r) {
      A total = 0;
      for (int64_t j = begin; j < end; ++j)
        total += rowAt(values, j)[c] * p[r * stride + j];
      out[r * width + c] = total;
    }
}

template <typename A>
void scoresAny(const A *q, int rows, int64_t size, const AttentionRows<A> &keys, int64_t begin, int64_t end,
               A *scores, int64_t stride) {
  if (rows == kAttentionRows)
    return scoreRows<A, kAttentionRows>(q, size, keys, begin, end, scores, stride);
  for (int r = 0; r < rows; ++r)
    scoreRows<A, 1>(q + r * size, size, keys, begin, end, scores + r * stride, stride);
}

template <typename A>
void valuesAny(const A *p, int rows, int64_t stride, const AttentionRows<A> &values, int64_t begin,
               int64_t end, int64_t width, A *out) {
  if (rows == kAttentionRows)
    return valueRows<A, kAttentionRows>(p, stride, values, begin, end, width, out);
  for (int r = 0; r < rows; ++r)
    valueRows<A, 1>(p + r * stride, stride, values, begin, end, width, out + r * width);
}

// exp(x) for x <= 0 to about 1 ulp: 2^n * p(f), |f| <= ln2/2, degree 6; below -87.3 it is 0.
inline Lanes<float> expNegative(Lanes<float> x) {
  Lanes<float> n = __builtin_elementwise_roundeven(x * 1.44269504089f);
  Lanes<float> f = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Lanes<float> p = f * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * f + 8.3334519073e-3f;
  p = p * f + 4.1665795894e-2f;
  p = p * f + 1.6666665459e-1f;
  p = p * f + 5.0000001201e-1f;
  p = p * f * f + f + 1.0f;
  auto inRange = x > -87.3f;
  Lanes<float> clamped = inRange ? n : Lanes<float>{};
  LanesOf<float>::Int exponent = (__builtin_convertvector(clamped, LanesOf<float>::Int) + 127) << 23;
  // NaN compares false; it must stay NaN.
  Lanes<float> result = inRange ? p * (Lanes<float>)exponent : Lanes<float>{};
  return x == x ? result : x;
}
inline Lanes<double> expNegative(Lanes<double> x) {
  Lanes<double> result;
  for (int i = 0; i < kLanes; ++i)
    result[i] = __builtin_exp(x[i]);
  return result;
}

template <typename A> void softmaxRow(A *row, int64_t count) {
  A top = -A(__builtin_inff());
  for (int64_t j = 0; j < count; ++j)
    top = row[j] > top ? row[j] : top;
  if (top == -A(__builtin_inff()))
    top = 0;
  Lanes<A> total = {};
  for (int64_t j = 0; j < count; j += kLanes) {
    if (j + kLanes <= count) {
      Lanes<A> x = expNegative(load(row + j) - top);
      total += x;
      store(row + j, x);
      continue;
    }
    Lanes<A> x = Lanes<A>{} - A(__builtin_inff());
    for (int64_t i = 0; i < count - j; ++i)
      x[i] = row[j + i];
    x = expNegative(x - top);
    total += x;
    for (int64_t i = 0; i < count - j; ++i)
      row[j + i] = x[i];
  }
  A all = sum<A>(total), scale = all == 0 ? A(0) : 1 / all;
  for (int64_t j = 0; j < count; ++j)
    row[j] *= scale;
}

template <typename A> constexpr AttentionCore<A> kCore = {scoresAny<A>, softmaxRow<A>, valuesAny<A>};

} // namespace
} // namespace dspark
