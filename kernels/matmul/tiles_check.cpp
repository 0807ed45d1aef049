// Whether this machine's tiles compute what the manual says. They were only ever tested in software
// (test/tiles) by those who wrote these kernels, so each kind of product is tried before it is relied on.
#include "kernels/common/tiles.h"
#include "kernels/matmul/gemm.h"
#include "kernels/matmul/igemm.h"
#include "kernels/matmul/packed.h"
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

namespace dspark {
namespace {

constexpr int64_t kRows = 17, kTerms = 70, kColumns = 16; // a block and a row, a tile and a tail

// Numbers that repeat, none of them special: a step of Knuth's linear congruence each.
class Draw {
public:
  int byte() {
    state = state * 1664525 + 1013904223;
    return int(state >> 24);
  }
  float number() { return float(byte() - 128) + float(byte()) / 256 + float(byte()) / 65536; }

private:
  uint32_t state = 1;
};

struct Matrices {
  std::vector<float> a = std::vector<float>(kRows * kTerms), b = std::vector<float>(kTerms * kColumns);

  double sum(int64_t row, int64_t column, double *magnitude) const {
    double total = 0;
    *magnitude = 0;
    for (int64_t k = 0; k < kTerms; ++k) {
      double term = double(a[size_t(row * kTerms + k)]) * double(b[size_t(k * kColumns + column)]);
      total += term;
      *magnitude += std::fabs(term);
    }
    return total;
  }
  /// No more than K + 4 roundings apart, which both kinds of products keep (gemm_tiles.h, packed_tiles.h).
  bool agree(const std::vector<float> &y) const {
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      double magnitude, want = sum(i / kColumns, i % kColumns, &magnitude);
      if (!(std::fabs(double(y[size_t(i)]) - want) <= double(kTerms + 4) * 0x1p-24 * magnitude))
        return false;
    }
    return true;
  }
};

bool bytesAgree(Draw draw) {
  TileScope tiles(Isa::Amx);
  const IgemmOps &ops = igemmOps(Isa::Amx);
  std::vector<uint8_t> a(kRows * kTerms), b(kTerms * kColumns);
  for (uint8_t &byte : a)
    byte = uint8_t(draw.byte());
  for (uint8_t &byte : b)
    byte = uint8_t(draw.byte());
  int64_t step = rowBytes(ops, kTerms);
  std::vector<std::byte> rows(size_t(kRows * step)), panel(size_t(packedPanelBytes(kTerms)));
  std::vector<int16_t> zeros(kRows, 3);
  std::vector<int32_t> c(kRows * kIntegerColumns);
  for (int64_t r = 0; r < kRows; ++r)
    ops.row(a.data() + r * kTerms, false, kTerms, 1, 3, rows.data() + r * step);
  ops.pack(b.data(), true, kTerms, kColumns, kColumns, 1, panel.data());
  ops.tile({rows.data(), zeros.data(), kRows, kTerms, panel.data(), 1, nullptr, c.data(), nullptr});
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    int32_t want = 0;
    for (int64_t k = 0; k < kTerms; ++k)
      want += (int32_t(a[size_t(i / kColumns * kTerms + k)]) - 3) *
              int32_t(int8_t(b[size_t(k * kColumns + i % kColumns)]));
    if (c[size_t(i)] != want)
      return false;
  }
  return true;
}

PackedTile packedTile(const char *format, const uint8_t *panel, int64_t k, std::vector<float> &y,
                      std::vector<float> &scratch) {
  PackedTile tile = {};
  tile.format = *PackedFormat::named(format);
  tile.panels = panel;
  tile.panelBytes = tile.format.panelBytes(k);
  tile.k = k;
  tile.rows = kRows;
  tile.columns = kColumns;
  tile.c = y.data();
  tile.cRow = kColumns;
  scratch.resize(size_t(kPackedScratchFloats));
  tile.scratch = scratch.data();
  return tile;
}

// Codes of 8 bits with scale 1 times rows that are whole numbers up to 127: exact sums below 2^24.
bool codesAgree(Draw draw) {
  TileScope tiles(Isa::Amx, TileDepth::Half);
  const PackedOps &ops = packedOps(Isa::Amx);
  constexpr int64_t kSteps = 2, kOwnTerms = kSteps * kStepTerms;
  std::vector<float> y(kRows * kColumns), scratch;
  PackedFormat format = *PackedFormat::named("int8_g32_f32");
  std::vector<uint8_t> panel(size_t(format.panelBytes(kOwnTerms)));
  int64_t header = format.headerBytes(kOwnTerms);
  for (int64_t at = 0; at < int64_t(panel.size()); ++at)
    panel[size_t(at)] = uint8_t(draw.byte());
  for (int64_t block = 0; block < format.blocks(kOwnTerms); ++block)
    for (int64_t at = 0; at < header; at += 4) {
      float one = 1;
      std::memcpy(panel.data() + block * format.blockBytes(kOwnTerms) + at, &one, sizeof(one));
    }
  PackedTile tile = packedTile("int8_g32_f32", panel.data(), kOwnTerms, y, scratch);
  tile.isInt8 = true;
  tile.quantized = {nullptr, kSteps, ops.codeBytes(format)};
  std::vector<uint8_t> records(size_t(kRows * tile.quantized.rowBytes()));
  tile.quantized.records = records.data();
  std::vector<float> a(size_t(kRows * kOwnTerms));
  for (int64_t row = 0; row < kRows; ++row) {
    float *x = a.data() + row * kOwnTerms;
    for (int64_t k = 0; k < kOwnTerms; ++k)
      x[k] = k % kStepTerms == 0 ? 127 : float(draw.byte() % 255 - 127);
    QuantizedRows own = tile.quantized;
    own.records += row * own.rowBytes();
    ops.quantize(x, kOwnTerms, format, own);
  }
  ops.tile(tile);
  std::vector<float> column(size_t(kOwnTerms), 0.0f);
  for (int64_t j = 0; j < kColumns; ++j) {
    ops.column(format, panel.data(), j, kOwnTerms, column.data());
    for (int64_t row = 0; row < kRows; ++row) {
      float want = 0;
      for (int64_t k = 0; k < kOwnTerms; ++k)
        want += a[size_t(row * kOwnTerms + k)] * column[size_t(k)];
      if (y[size_t(row * kColumns + j)] != want)
        return false;
    }
  }
  return true;
}

bool halvesAgree(Draw draw) {
  TileScope tiles(Isa::Amx);
  const PackedOps &ops = packedOps(Isa::Amx);
  Matrices m;
  std::vector<float> y(kRows * kColumns), scratch;
  std::vector<uint16_t> panel(size_t(SplitRows::partElements(kTerms) * kColumns)); // [k / 2][16][2]
  for (int64_t k = 0; k < kTerms; ++k)
    for (int64_t j = 0; j < kColumns; ++j) {
      float weight = float(draw.byte() - 128);
      m.b[size_t(k * kColumns + j)] = weight;
      panel[size_t((k / 2 * kColumns + j) * 2 + k % 2)] =
          uint16_t(__builtin_bit_cast(uint32_t, weight) >> 16);
    }
  PackedTile tile = packedTile("bf16", reinterpret_cast<const uint8_t *>(panel.data()), kTerms, y, scratch);
  tile.split = {nullptr, SplitRows::rowElementsOf(kTerms, 3), 3};
  std::vector<uint16_t> parts(size_t(SplitRows::rowsOf(kRows) * tile.split.rowElements));
  tile.split.parts = parts.data();
  for (float &x : m.a)
    x = draw.number();
  for (int64_t row = 0; row < kRows; ++row) {
    SplitRows own = tile.split;
    own.parts += row * own.rowElements;
    ops.split(m.a.data() + row * kTerms, kTerms, own);
  }
  ops.tile(tile);
  return m.agree(y);
}

bool floatsAgree(Draw draw) {
  TileScope tiles(Isa::Amx);
  Matrices m;
  std::vector<float> y(kRows * kColumns);
  std::vector<uint16_t> parts(kGemmPartElements);
  for (float &x : m.a)
    x = draw.number();
  for (float &x : m.b)
    x = draw.number();
  const float *a[kRows];
  float *c[kRows];
  for (int64_t row = 0; row < kRows; ++row) {
    a[row] = m.a.data() + row * kTerms;
    c[row] = y.data() + row * kColumns;
  }
  GemmTile tile = {};
  tile.a = a;
  tile.aStride = tile.rows = kRows;
  tile.c = c;
  tile.taps = 1;
  tile.depth = kTerms;
  tile.b = m.b.data();
  tile.panelStride = kTerms * kPanel;
  tile.columns = kColumns;
  tile.parts = parts.data();
  gemmOps(Isa::Amx).tile(tile);
  return m.agree(y);
}

} // namespace

const char *wrongTileProduct() {
  Draw draw;
  return !bytesAgree(draw)    ? "u8 by s8"
         : !codesAgree(draw)  ? "s8 by u8"
         : !halvesAgree(draw) ? "bf16"
         : !floatsAgree(draw) ? "f32 by parts in bf16"
                              : nullptr;
}

bool tilesWork() {
  static const bool work = [] {
    const char *wrong = wrongTileProduct();
    if (wrong)
      std::fprintf(stderr,
                   "dspark: AMX is not used, since this machine's products of %s are not what they should be "
                   "(DSPARK_ISA=avx512 avoids the check)\n",
                   wrong);
    return !wrong;
  }();
  return work;
}

} // namespace dspark
