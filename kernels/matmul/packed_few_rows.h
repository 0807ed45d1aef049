// Packed weights times rows of 8 bits, panel by panel, without unpacking. Included once per ISA level.
//
// One row is bound by the reading of the weights, if everything else fits beside it: a panel is walked in one
// loop, sums and scales stay in registers, and every step asks for the lines that it will be followed by. (By
// chunks, as for many rows, 123 of 219 instructions a step made scales, and a burst of 64 prefetches a chunk
// held up what came behind it.)
#pragma once
#include "kernels/matmul/packed_products.h"

namespace dspark {
namespace {

/// Where one pass over a panel asks for what comes after it. A panel that is walked several times is in the
/// cache from the second pass on; each pass then brings a part of the next panel into L2, as the rows and
/// this panel fill L1, so that memory is busy all the time. One that is walked once is asked for some KiB
/// ahead, every line of it once: the machine does not read ahead by itself where it finds lines in L2, and
/// waits for each that was left out (q6_k, 2 rows: 93 GOP/s without every 105th line, 140 with it).
template <int R, int64_t Lines> struct Ahead {
  // Into L1, from where the codes are read on. AVX-512: up to four rows of 8-bit codes wait for memory, too,
  // but not as one row does (two rows of q8_0 101 GOP/s; 87 not asked for, 77 asked for into L2).
  static constexpr bool kIsNear = kAheadLocality == 3 || (R > 1 && R <= 4 && Lines == 8);
  static constexpr int64_t kNearBytes = 2048;             // 1 to 8 KiB are alike
  static constexpr int64_t kBytes = R == 2 ? 6592 : 8192; // 6 to 8 KiB are; 4 and 12 are slower
  // Zen 4 reads ahead by itself as long as lines are first touched in their order, which those of headers of
  // many numbers are not (one row: q4_k 88 and 98 GOP/s, q5_k 69 and 84, q6_k 64 and 74).
  static constexpr bool kIsOrdered = kAheadLocality == 2 && R <= 2;

  const uint8_t *at;
  int64_t lines; // of each step
  bool isNextPanel;

  Ahead(const PackedTile &tile, const uint8_t *panel, int64_t row, int64_t passes)
      : isNextPanel(R > 1 && passes > 1) {
    int64_t steps = tile.quantized.steps > 0 ? tile.quantized.steps : 1, perPass = steps * passes * 64;
    lines = (tile.panelBytes + perPass - 1) / perPass;
    at = panel + tile.panelBytes + row * passes / tile.rows * steps * lines * 64;
  }
  /// Before a step. Headers between the steps are a line more.
  template <bool HasHeader> DSPARK_SIMD void step(const uint8_t *codes) {
    if (!isNextPanel)
      return near<Lines, HasHeader>(codes);
    for (int64_t i = 0; i < lines; ++i, at += 64)
      __builtin_prefetch(at, 0, 2);
  }
  /// Before a block of several steps, whose header has so many lines.
  template <int64_t HeaderLines> DSPARK_SIMD void block(const uint8_t *header) {
    if (kAheadLocality == 2 && !isNextPanel)
      near<HeaderLines, false>(header);
  }

private:
  template <int64_t Count, bool HasHeader> DSPARK_SIMD void near(const uint8_t *bytes) {
    if constexpr (kIsNear)
      unroll<Count + HasHeader>(DSPARK_LAMBDA { __builtin_prefetch(bytes + kNearBytes + 64 * i); });
    else if constexpr (asksAhead(R))
      unroll<Count + HasHeader>(DSPARK_LAMBDA { __builtin_prefetch(bytes + kBytes + 64 * i, 0, 2); });
    if constexpr (kIsOrdered)
      unroll<Count>(DSPARK_LAMBDA { __builtin_prefetch(bytes + 64 * i); });
  }
};

// Beyond so many rows codes are unpacked once for all, where that pays (AVX2, cycles for a row and step at
// 64 rows, here and by chunks: U4 18.3, 18.6; U8 31, 32; when planes held them U5 30, 23; U6 27, 25). With
// AVX-512, whose pipes for shifts and ands are others than those for products, it never does.
constexpr int64_t mostFewRows(CodeKind kind) {
  return kHasStarts || kind == CodeKind::U4 || kind == CodeKind::U8 ? kPackedRows : 8;
}

// Lines of 64 bytes of a block's header.
constexpr int64_t superHeaderLines(ScaleKind kind, int groupsPerStep) {
  int64_t groups = kSuperTerms / kStepTerms * groupsPerStep;
  int64_t bytes = hasMinima(kind) ? 4 + groups * (kind == ScaleKind::SuperU8 ? 2 : 1) : 2 + groups;
  return (bytes * kPackedColumns + 63) / 64;
}

// Rows [row, row + R) of a panel. Z: the second numbers' kind.
template <CodeKind K, ScaleKind S, ZeroKind Z, int Groups, int R>
void fewRows(const PackedTile &tile, const uint8_t *panel, int64_t row, float *sums) {
  constexpr int kCount = int(kQuads) / Groups;
  constexpr int64_t kLines = kCodeLines[int(K)];
  const PackedFormat &format = tile.format;
  const int64_t headerBytes = format.headerBytes(tile.k), groups = format.groupsPerBlock(tile.k);
  const int64_t stepsPerBlock = format.blockTerms(tile.k) / kStepTerms, steps = tile.quantized.steps;
  constexpr int64_t kMost = rowsAtOnce(K, maxCode(K), Groups);
  const int64_t passes = (tile.rows + kMost - 1) / kMost;
  Ahead<R, kLines> ahead(tile, panel, row, passes);
  RowCursors<maxCode(K), R> rows(tile.quantized, row);
  vf sum[R][kVectors], joined[R][kVectors], scale[kVectors], zero[kVectors];
  unroll<R * kVectors>(DSPARK_LAMBDA { sum[i / kVectors][i % kVectors] = splat(0); });
  unroll<kVectors>(DSPARK_LAMBDA { zero[i] = splat(float(format.zeroPoint)); });
  const uint8_t *header = panel, *lines = panel;
  Factors<S> factors;
  for (int64_t s = 0, in = stepsPerBlock; s < steps; ++s, ++in, lines += kLines * 64) {
    if (in == stepsPerBlock) {
      header = lines;
      lines += headerBytes;
      in = 0;
      factors.read(header);
      if constexpr (isSuper(S))
        ahead.template block<superHeaderLines(S, Groups)>(header);
    }
    ahead.template step<!isSuper(S) || kAheadLocality == 3>(lines);
    unroll<Groups>([&](auto g) __attribute__((always_inline)) {
      int64_t group = isSuper(S) ? in * Groups + g : g;
      unroll<kVectors>(DSPARK_LAMBDA {
        scale[i] = scaleAt<S>(factors, header, group, i * kLanes);
        if constexpr (Z != ZeroKind::Constant)
          zero[i] = zeroAt<S>(Z, factors, header, group, groups, i * kLanes);
      });
      addGroup<K, maxCode(K), Z, g * kCount, kCount>(lines, rows, scale, zero, joined, sum);
    });
    rows.next();
  }
  sums += row * kPackedColumns;
  unroll<R * kVectors>(DSPARK_LAMBDA { store(sums + i * kLanes, sum[i / kVectors][i % kVectors]); });
}

using FewRows = void (*)(const PackedTile &, const uint8_t *panel, int64_t row, float *sums);
/// The functions for 1 .. count rows of weights of one form.
struct FewRowsTable {
  CodeKind code;
  ScaleKind scale;
  ZeroKind zero;
  int groups;
  const FewRows *rows;
  int count;
};

template <CodeKind K, ScaleKind S, ZeroKind Z, int Groups, int... R>
constexpr FewRows kFewRowsFunctions[] = {fewRows<K, S, Z, Groups, R + 1>...};
template <CodeKind K, ScaleKind S, ZeroKind Z, int Groups, int... R>
constexpr FewRowsTable fewRowsTable(std::integer_sequence<int, R...>) {
  return {K, S, Z, Groups, kFewRowsFunctions<K, S, Z, Groups, R...>, int(sizeof...(R))};
}
template <CodeKind K, ScaleKind S, ZeroKind Z, int Groups = 1> constexpr FewRowsTable few() {
  return fewRowsTable<K, S, Z, Groups>(std::make_integer_sequence<int, rowsAtOnce(K, maxCode(K), Groups)>());
}

/// The frequent forms: GGUF's, and groups of 4 bits; null for others and for too many rows.
const FewRowsTable *fewRowsTableOf(const PackedFormat &format, int64_t rows) {
#if defined(__AVX2__)
  using C = CodeKind;
  using S = ScaleKind;
  using Z = ZeroKind;
  static constexpr FewRowsTable kForms[] = {
      few<C::U4, S::F16, Z::Constant>(),
      few<C::U4, S::F16, Z::Offset>(),
      few<C::U4, S::F16, Z::Byte>(),
      few<C::U4, S::BF16, Z::Constant>(),
      few<C::U4, S::BF16, Z::Byte>(),
      few<C::U4, S::F32, Z::Constant>(),
      few<C::U4, S::F32, Z::Byte>(),
      few<C::U5, S::F16, Z::Constant>(),
      few<C::U5, S::F16, Z::Offset>(),
      few<C::U8, S::F16, Z::Constant>(),
      few<C::U8, S::F32, Z::Constant>(),
      few<C::U2, S::SuperNibbles, Z::Offset, 2>(),
      few<C::U3, S::SuperI8, Z::Constant, 2>(),
      few<C::U4, S::SuperU8, Z::Offset>(),
      few<C::U5, S::SuperU8, Z::Offset>(),
      few<C::U6, S::SuperI8, Z::Constant, 2>(),
      few<C::Nl4, S::F16, Z::Constant>(),
      few<C::Nl4, S::SuperI8, Z::Constant>(),
      few<C::Iq1s, S::SuperEighths, Z::Constant>(),
      few<C::Iq1m, S::SuperEighths, Z::Constant, 2>(),
      few<C::Iq2, S::SuperEighths, Z::Constant>(),
      few<C::Iq2, S::SuperEighths, Z::Constant, 2>(),
      few<C::Iq3xxs, S::SuperEighths, Z::Constant>(),
      few<C::Iq3s, S::SuperI8, Z::Constant>(),
      few<C::U2, S::F16, Z::Constant>(),
      few<C::Fp4, S::E8M0, Z::Constant>(),
      few<C::Fp4, S::Ue4m3, Z::Constant, 2>(),
  };
  for (const FewRowsTable &form : kForms)
    if (rows <= mostFewRows(form.code) && form.code == format.code && form.scale == format.scale &&
        form.zero == format.zero && form.groups == format.scalesPerStep())
      return &form;
#endif
  return nullptr;
}

} // namespace
} // namespace dspark
