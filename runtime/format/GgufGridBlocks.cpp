// Sources: ggml's block_iq* structures (little-endian) and its lattices, gguf_grids.inc.
//
// A run of 8 terms (IQ3: of 4) is an index into a lattice, whose points give magnitudes, and a mask of signs.
// Where a mask has 7 bits the eighth makes their number even.
#include "runtime/format/GgufGridBlocks.h"
#include <bit>
#include <string_view>

namespace dspark {
namespace {

using Block = const uint8_t *;

#include "runtime/format/gguf_grids.inc"

// A lattice as gguf_grids.py writes it: the points' digits, one a term, which name levels.
class Lattice {
public:
  Lattice(std::string_view text, int levels, int terms) : terms(size_t(terms)) {
    int64_t point = 0, step = 0, unit = 1;
    for (char c : text) {
      int digit = c - 35;
      step += digit % 32 * unit;
      unit *= 32;
      if (digit >= 32)
        continue;
      point += step;
      step = 0, unit = 1;
      for (int64_t i = 0, rest = point; i < terms; ++i, rest /= levels)
        digits.push_back(uint8_t(rest % levels));
    }
  }
  const uint8_t *point(unsigned index) const { return digits.data() + index * terms; }

private:
  size_t terms;
  std::vector<uint8_t> digits;
};

unsigned u16At(Block p) { return p[0] | unsigned(p[1]) << 8; }
uint32_t u32At(Block p) { return u16At(p) | uint32_t(u16At(p + 2)) << 16; }

// 7 bits and the one that makes their number even.
unsigned evenSigns(unsigned seven) { return seven | unsigned(std::popcount(seven) & 1) << 7; }

// `count` codes: a point's digits, and above them in `signBit` the signs.
void putSigned(const uint8_t *point, int count, unsigned signs, unsigned signBit, uint8_t *codes) {
  for (int i = 0; i < count; ++i)
    codes[i] = uint8_t(point[i] | ((signs >> i & 1) ? signBit : 0));
}

// Scales of 3 and 4 bits stand for odd numbers.
uint32_t oddScale(unsigned nibble) { return 2 * (nibble & 15) + 1; }

const Lattice &iq1Lattice() {
  static const Lattice lattice(kIq1Points, 3, 8);
  return lattice;
}

} // namespace

// A step's terms are -1, 0 or 1 plus an eighth, or minus one: then all of it is negative, scale and levels.
void readIq1S(Block b, BlockValues &v) {
  v.factor = u16At(b);
  for (unsigned step = 0; step < 8; ++step) {
    unsigned high = u16At(b + 34 + 2 * step);
    bool isNegative = high & 0x8000;
    int scale = int(oddScale(high >> 12 & 7));
    v.scale[step] = uint8_t(isNegative ? -scale : scale);
    for (unsigned run = 0; run < 4; ++run) {
      const uint8_t *point = iq1Lattice().point(b[2 + 4 * step + run] | (high >> 3 * run & 7) << 8);
      for (unsigned i = 0; i < 8; ++i)
        v.codes[step * 32 + run * 8 + i] = uint8_t(isNegative ? 2 - point[i] : point[i]);
    }
  }
}

// The same with the eighth's sign for each run; the factor's bits are spread over the scales' four words.
void readIq1M(Block b, BlockValues &v) {
  v.factor = 0;
  for (unsigned word = 0; word < 4; ++word)
    v.factor |= u16At(b + 48 + 2 * word) >> 12 << 4 * word;
  for (unsigned run = 0; run < 32; ++run) {
    unsigned high = b[32 + run / 2] >> run % 2 * 4 & 15;
    const uint8_t *point = iq1Lattice().point(b[run] | (high & 7) << 8);
    for (unsigned i = 0; i < 8; ++i)
      v.codes[run * 8 + i] = uint8_t(2 * point[i] + (high & 8 ? 0 : 1));
  }
  for (unsigned g = 0; g < 16; ++g)
    v.scale[g] = oddScale(u16At(b + 48 + g / 4 * 2) >> g % 4 * 3 & 7);
}

void readIq2Xxs(Block b, BlockValues &v) {
  static const Lattice lattice(kIq2XxsPoints, 3, 8);
  v.factor = u16At(b);
  for (unsigned step = 0; step < 8; ++step) {
    Block points = b + 2 + 8 * step;
    uint32_t signs = u32At(points + 4);
    v.scale[step] = oddScale(signs >> 28);
    for (unsigned run = 0; run < 4; ++run)
      putSigned(lattice.point(points[run]), 8, evenSigns(signs >> 7 * run & 127), 4,
                &v.codes[step * 32 + run * 8]);
  }
}

void readIq2Xs(Block b, BlockValues &v) {
  static const Lattice lattice(kIq2XsPoints, 3, 8);
  v.factor = u16At(b);
  for (unsigned run = 0; run < 32; ++run) {
    unsigned word = u16At(b + 2 + 2 * run);
    putSigned(lattice.point(word & 511), 8, evenSigns(word >> 9), 4, &v.codes[run * 8]);
  }
  for (unsigned g = 0; g < 16; ++g)
    v.scale[g] = oddScale(b[66 + g / 2] >> g % 2 * 4);
}

void readIq2S(Block b, BlockValues &v) {
  static const Lattice lattice(kIq2SPoints, 3, 8);
  v.factor = u16At(b);
  for (unsigned run = 0; run < 32; ++run) {
    unsigned high = b[66 + run / 4] >> run % 4 * 2 & 3;
    putSigned(lattice.point(b[2 + run] | high << 8), 8, b[34 + run], 4, &v.codes[run * 8]);
  }
  for (unsigned g = 0; g < 16; ++g)
    v.scale[g] = oddScale(b[74 + g / 2] >> g % 2 * 4);
}

// Quarters of the factor, in eighths.
void readIq3Xxs(Block b, BlockValues &v) {
  static const Lattice lattice(kIq3XxsPoints, 8, 4);
  v.factor = u16At(b);
  for (unsigned step = 0; step < 8; ++step) {
    uint32_t signs = u32At(b + 66 + 4 * step);
    v.scale[step] = 2 * oddScale(signs >> 28);
    for (unsigned run = 0; run < 8; ++run)
      putSigned(lattice.point(b[2 + 8 * step + run]), 4, evenSigns(signs >> run / 2 * 7 & 127) >> run % 2 * 4,
                8, &v.codes[step * 32 + run * 4]);
  }
}

void readIq3S(Block b, BlockValues &v) {
  static const Lattice lattice(kIq3SPoints, 8, 4);
  v.factor = u16At(b);
  for (unsigned run = 0; run < 64; ++run) {
    unsigned high = b[66 + run / 8] >> run % 8 & 1;
    putSigned(lattice.point(b[2 + run] | high << 8), 4, b[74 + run / 2] >> run % 2 * 4, 8, &v.codes[run * 4]);
  }
  for (unsigned g = 0; g < 8; ++g)
    v.scale[g] = oddScale(b[106 + g / 2] >> g % 2 * 4);
}

} // namespace dspark
