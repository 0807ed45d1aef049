// The transforms of qwinograd.h, included once per ISA level. Channels are in vector lanes; each transform
// runs over columns first, then rows, by way of a block of vectors that stays in the L1 cache.
#pragma once
#include "kernels/conv/qwinograd.h"
#include "kernels/matmul/igemm_words.h"
#include "kernels/matmul/sums.h"

namespace dspark {
namespace {

constexpr int kIn = kQWinogradIn, kOut = kQWinogradOut;
constexpr int64_t kWordLanes = 16;
typedef int16_t words __attribute__((ext_vector_type(kWordLanes)));
typedef int16_t wordsAt __attribute__((ext_vector_type(kWordLanes), aligned(2)));
DSPARK_SIMD words loadWords(const int16_t *p) { return *reinterpret_cast<const wordsAt *>(p); }
DSPARK_SIMD void storeWords(int16_t *p, words v) { *reinterpret_cast<wordsAt *>(p) = v; }

// Bt d
DSPARK_SIMD void inputTransform(const words (&d)[kIn], words (&t)[kIn]) {
  t[0] = ((d[0] - d[2]) << 2) + (d[4] - d[2]);
  t[1] = (d[3] + d[4]) - ((d[1] + d[2]) << 2);
  t[2] = ((d[1] - d[2]) << 2) + (d[4] - d[3]);
  words even = d[4] - d[2], odd = (d[3] - d[1]) << 1;
  t[3] = even + odd;
  t[4] = even - odd;
  t[5] = ((d[1] - d[3]) << 2) + (d[5] - d[3]);
}

// G g
DSPARK_SIMD void filterTransform(const words (&g)[3], words (&t)[kIn]) {
  words near = g[0] + g[2], far = g[0] + (g[2] << 2), twice = g[1] << 1;
  t[0] = g[0];
  t[1] = near + g[1];
  t[2] = near - g[1];
  t[3] = far + twice;
  t[4] = far - twice;
  t[5] = g[2];
}

// At m times 24, 12, 6 and 6, modulo 2^32.
typedef uint32_t vu __attribute__((ext_vector_type(kLanes)));
typedef uint32_t vuAt __attribute__((ext_vector_type(kLanes), aligned(4)));
DSPARK_SIMD void outputTransform(const vu (&m)[kIn], vu (&y)[kOut]) {
  vu sumA = m[1] + m[2], sumB = m[3] + m[4], oddA = m[1] - m[2], oddB = m[3] - m[4];
  auto six = [](vu v) __attribute__((always_inline)) { return (v << 2) + (v << 1); };
  y[0] = six(m[0]) - (sumA << 2) + sumB;
  y[1] = oddB - (oddA << 1);
  y[2] = sumB - sumA;
  y[3] = six(m[5]) + (oddB << 1) - oddA;
}
constexpr uint32_t kInverseOfNine = 0x38e38e39;
static_assert(uint32_t(9 * kInverseOfNine) == 1);
// Powers of two in the factors above.
constexpr int shiftOf(int line) { return line == 0 ? 3 : line == 1 ? 2 : 1; }

template <bool isSigned> void inputs(const QWinogradInput &tile) {
  typedef uint8_t bytes __attribute__((ext_vector_type(kWordLanes)));
  typedef int8_t signedBytes __attribute__((ext_vector_type(kWordLanes)));
  for (int64_t c = 0; c < tile.channels; c += kWordLanes) {
    words columns[kIn][kIn]; // [row][column]
    unroll<kIn>([&](auto column) __attribute__((always_inline)) {
      words d[kIn], t[kIn];
      unroll<kIn>(DSPARK_LAMBDA {
        bytes raw;
        __builtin_memcpy(&raw, tile.pixels[i * kIn + column] + c, sizeof(raw));
        d[i] = (isSigned ? __builtin_convertvector(signedBytes(raw), words)
                         : __builtin_convertvector(raw, words)) -
               tile.zero;
      });
      inputTransform(d, t);
      unroll<kIn>(DSPARK_LAMBDA { columns[i][column] = t[i]; });
    });
    int16_t *to = tile.to + c;
    unroll<kIn>([&](auto row) __attribute__((always_inline)) {
      words t[kIn];
      inputTransform(columns[row], t);
      unroll<kIn>(DSPARK_LAMBDA { storeWords(to + (row * kIn + i) * tile.step, t[i]); });
    });
  }
}
void winogradInput(const QWinogradInput &tile) { tile.isSigned ? inputs<true>(tile) : inputs<false>(tile); }

void winogradFilters(const QWinogradFilters &filters) {
  int64_t tap = filters.count * kIntegerColumns;
  for (int64_t t = 0; t < 9; ++t)
    widenPanel(filters.panel + (t * filters.inputs + filters.first) * kIntegerColumns, filters.count / 4,
               filters.wide + t * tap);
  int16_t zeros[2 * kIntegerColumns] = {}; // as the words of a pair of terms lie
  for (int64_t i = 0; filters.zero && i < 2 * kIntegerColumns; ++i)
    zeros[i] = filters.zero[i / 2];
  for (int64_t at = 0; at < tap; at += kWordLanes) {
    words zero = loadWords(zeros + at % (2 * kIntegerColumns)), rows[kIn][3];
    unroll<3>([&](auto column) __attribute__((always_inline)) {
      words g[3], t[kIn];
      unroll<3>(DSPARK_LAMBDA { g[i] = loadWords(filters.wide + (i * 3 + column) * tap + at) - zero; });
      filterTransform(g, t);
      unroll<kIn>(DSPARK_LAMBDA { rows[i][column] = t[i]; });
    });
    unroll<kIn>([&](auto row) __attribute__((always_inline)) {
      words t[kIn];
      filterTransform(rows[row], t);
      unroll<kIn>(DSPARK_LAMBDA { storeWords(filters.to + (row * kIn + i) * filters.step + at, t[i]); });
    });
  }
}

void winogradProducts(const QWinogradProducts &products) {
  for (int64_t point = 0; point < kQWinogradPoints; ++point)
    wordRowsTo<ToSums>({products.a + point * products.aPoint, products.stride, products.depth,
                        products.c + point * products.cPoint, true, nullptr},
                       products.rows, products.b + point * products.bPoint);
}

void winogradOutput(const QWinogradOutput &tile) {
  for (int64_t column = 0; column < kIntegerColumns; column += kLanes) {
    vu rows[kOut][kIn], y[kOut];
    unroll<kIn>([&](auto point) __attribute__((always_inline)) {
      vu m[kIn], t[kOut];
      unroll<kIn>(DSPARK_LAMBDA {
        m[i] = *reinterpret_cast<const vuAt *>(tile.products + (i * kIn + point) * tile.step + column);
      });
      outputTransform(m, t);
      unroll<kOut>(DSPARK_LAMBDA { rows[i][point] = t[i]; });
    });
    unroll<kOut>([&](auto line) __attribute__((always_inline)) {
      outputTransform(rows[line], y);
      unroll<kOut>(DSPARK_LAMBDA {
        auto *sum = reinterpret_cast<vuAt *>(tile.sums + line * tile.line + i * kIntegerColumns + column);
        vu value = vu(vi(y[i] * kInverseOfNine) >> (shiftOf(line) + shiftOf(i)));
        *sum = tile.isFirst ? value : *sum + value;
      });
    });
  }
}

} // namespace
} // namespace dspark
