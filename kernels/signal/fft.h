// Discrete Fourier transforms of any length in double precision: radix 2 where the length is a power of two,
// else Bluestein's algorithm (L. Bluestein 1970: a convolution of power-of-two length).
#pragma once
#include <cstddef>
#include <cstdint>

namespace dspark {

struct Complex {
  double re, im;
};

/// Tables of one length in a caller's buffer. All members but the lengths point behind this object.
struct FftTables {
  int64_t n;         // the transform's length
  int64_t m;         // n, or the power of two >= 2n - 1 of the convolution
  Complex *twiddles; // exp(-2 pi i k / m), k < m/2
  Complex *chirp;    // exp(-pi i k k / n), k < n; only when m != n
  Complex *filter;   // transform of the conjugate chirp, m entries; only when m != n

  /// Bytes that build() needs for any length up to n, itself included.
  static size_t bytes(int64_t n);
  /// Entries of work space for transforms of any length up to n.
  static int64_t workSize(int64_t n);
  static FftTables &build(int64_t n, std::byte *buffer);

  /// data[0, n) in place; data has room for workSize(n). The inverse is scaled by 1 / n.
  void transform(Complex *data, bool inverse) const;
};

} // namespace dspark
