#include "kernels/signal/fft.h"
#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

namespace dspark {
namespace {

Complex multiply(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

int64_t convolutionLength(int64_t n) {
  auto u = uint64_t(n);
  return std::has_single_bit(u) ? n : int64_t(std::bit_ceil(2 * u - 1));
}

// Decimation in time, in place; m is a power of two.
void radix2(Complex *x, int64_t m, const Complex *twiddles) {
  for (int64_t i = 1, j = 0; i < m; ++i) {
    int64_t bit = m >> 1;
    for (; j & bit; bit >>= 1)
      j ^= bit;
    j ^= bit;
    if (i < j)
      std::swap(x[i], x[j]);
  }
  for (int64_t half = 1; half < m; half *= 2) {
    int64_t step = m / (2 * half);
    for (int64_t begin = 0; begin < m; begin += 2 * half)
      for (int64_t k = 0; k < half; ++k) {
        Complex &a = x[begin + k], &b = x[begin + k + half];
        Complex t = multiply(b, twiddles[k * step]);
        b = {a.re - t.re, a.im - t.im};
        a = {a.re + t.re, a.im + t.im};
      }
  }
}

Complex unit(double angle) { return {std::cos(angle), std::sin(angle)}; }

} // namespace

int64_t FftTables::workSize(int64_t n) { return int64_t(std::bit_ceil(uint64_t(2 * n))); }

size_t FftTables::bytes(int64_t n) {
  return sizeof(FftTables) + size_t(workSize(n) / 2 + n + workSize(n)) * sizeof(Complex);
}

FftTables &FftTables::build(int64_t n, std::byte *buffer) {
  auto &t = *reinterpret_cast<FftTables *>(buffer);
  t.n = n, t.m = convolutionLength(n);
  t.twiddles = reinterpret_cast<Complex *>(buffer + sizeof(FftTables));
  t.chirp = t.twiddles + t.m / 2;
  t.filter = t.chirp + n;
  for (int64_t k = 0; k < t.m / 2; ++k)
    t.twiddles[k] = unit(-2 * std::numbers::pi * double(k) / double(t.m));
  if (t.m == n)
    return t;
  for (int64_t k = 0; k < n; ++k) // k*k modulo 2n keeps the angle small and exact
    t.chirp[k] = unit(-std::numbers::pi * double(uint64_t(k) * uint64_t(k) % uint64_t(2 * n)) / double(n));
  for (int64_t k = 0; k < t.m; ++k)
    t.filter[k] = {0, 0};
  for (int64_t k = 0; k < n; ++k)
    t.filter[k] = t.filter[k ? t.m - k : 0] = {t.chirp[k].re, -t.chirp[k].im};
  radix2(t.filter, t.m, t.twiddles);
  return t;
}

void FftTables::transform(Complex *data, bool inverse) const {
  if (inverse)
    for (int64_t k = 0; k < n; ++k)
      data[k].im = -data[k].im;
  if (m == n) {
    radix2(data, n, twiddles);
  } else {
    for (int64_t k = 0; k < n; ++k)
      data[k] = multiply(data[k], chirp[k]);
    for (int64_t k = n; k < m; ++k)
      data[k] = {0, 0};
    radix2(data, m, twiddles);
    for (int64_t k = 0; k < m; ++k) { // the inverse transform of the product, by conjugation
      Complex product = multiply(data[k], filter[k]);
      data[k] = {product.re, -product.im};
    }
    radix2(data, m, twiddles);
    for (int64_t k = 0; k < n; ++k)
      data[k] = multiply({data[k].re / double(m), -data[k].im / double(m)}, chirp[k]);
  }
  if (inverse)
    for (int64_t k = 0; k < n; ++k)
      data[k] = {data[k].re / double(n), -data[k].im / double(n)};
}

} // namespace dspark
