// The loops of packed.h, included once per ISA level.
#pragma once
#include "kernels/matmul/activate_loops.h"
#include "kernels/matmul/packed_codes.h"

namespace dspark {
namespace {

// Beyond so many rows a chunk's codes are unpacked once for all of them.
#if defined(__AVX2__)
constexpr int64_t kFewRows = 8;
#else
constexpr int64_t kFewRows = 0;
#endif

// --- int8 ---

struct QuantizedChunk {
  Chunk weights;
  QuantizedRows rows; // from the chunk's first step on
  int64_t rowBytes;
};

// Rows [row, row + R) of one chunk. The second number of a group is a zero point, or an offset.
template <CodeKind K, int Max, bool IsOffset, int Groups, int R>
void int8Rows(const QuantizedChunk &chunk, int64_t row, float *sums) {
  const Chunk &weights = chunk.weights;
  sums += row * kPackedColumns;
  const int8_t *x[R];
  const float *rowScale[R], *rowSum[R];
  for (int r = 0; r < R; ++r) {
    x[r] = chunk.rows.codes + (row + r) * chunk.rowBytes;
    rowScale[r] = chunk.rows.scales + (row + r) * chunk.rows.steps;
    rowSum[r] = chunk.rows.sums + (row + r) * chunk.rows.steps * 2;
  }
  vf sum[R][kVectors];
  unroll<R * kVectors>(DSPARK_LAMBDA { sum[i / kVectors][i % kVectors] = load(sums + i * kLanes); });
  for (int s = 0; s < weights.steps; ++s) {
    unroll<Groups>([&](auto g) __attribute__((always_inline)) {
      constexpr int kCount = int(kQuads) / Groups;
      vi integer[R][kVectors];
      products<K, Max, g * kCount, kCount>(weights.lines[s], x, integer);
      vf scale[kVectors], zero[kVectors];
      unroll<kVectors>(DSPARK_LAMBDA {
        scale[i] = load(weights.scale[s] + g * kPackedColumns + i * kLanes);
        zero[i] = load(weights.zero[s] + g * kPackedColumns + i * kLanes);
      });
      unroll<R>([&](auto r) __attribute__((always_inline)) {
        vf by = splat(rowScale[r][s]), codes = splat(rowSum[r][2 * s + g]);
        unroll<kVectors>(DSPARK_LAMBDA {
          vf exact = floats(integer[r][i]);
          if constexpr (!IsOffset)
            exact = fma(zero[i], codes, exact); // whole numbers below 2^24
          sum[r][i] = fma(exact, scale[i] * by, sum[r][i]);
          if constexpr (IsOffset)
            sum[r][i] = fma(zero[i], codes, sum[r][i]);
        });
      });
    });
    for (int r = 0; r < R; ++r)
      x[r] += kStepTerms;
  }
  unroll<R * kVectors>(DSPARK_LAMBDA { store(sums + i * kLanes, sum[i / kVectors][i % kVectors]); });
}

using Int8Rows = void (*)(const QuantizedChunk &, int64_t row, float *sums);
/// The functions for 1 .. count rows of one form of weights.
struct RowTable {
  CodeKind code;
  int max;
  bool isOffset;
  int groups;
  const Int8Rows *rows;
  int count;
};

// As many rows as the registers hold: AVX2 needs 2 vectors a row, twice where 16-bit sums are widened midway.
#if defined(__AVX512F__)
constexpr int rowsAtOnce(CodeKind kind, int, int) { return kind == CodeKind::U8 ? 8 : 4; }
#elif defined(__AVX2__)
constexpr int rowsAtOnce(CodeKind, int max, int groups) {
  return max > 15 && max <= 63 && groups * max <= 48 ? 3 : 4;
}
#else
constexpr int rowsAtOnce(CodeKind, int, int) { return 2; }
#endif

template <CodeKind K, int Max, bool IsOffset, int Groups, int... R>
constexpr Int8Rows kRowFunctions[] = {int8Rows<K, Max, IsOffset, Groups, R + 1>...};
template <CodeKind K, int Max, bool IsOffset, int Groups, int... R>
constexpr RowTable rowTable(std::integer_sequence<int, R...>) {
  return {K, Max, IsOffset, Groups, kRowFunctions<K, Max, IsOffset, Groups, R...>, int(sizeof...(R))};
}
template <CodeKind K, bool IsOffset, int Groups, int Max = maxCode(K)> constexpr RowTable form() {
  return rowTable<K, Max, IsOffset, Groups>(std::make_integer_sequence<int, rowsAtOnce(K, Max, Groups)>());
}

using enum CodeKind;
#define DSPARK_UNPACKED(max)                                                                                 \
  form<U8, false, 1, max>(), form<U8, false, 2, max>(), form<U8, true, 1, max>(), form<U8, true, 2, max>()
constexpr RowTable kForms[] = {
    DSPARK_UNPACKED(255),
#if defined(__AVX2__) && !defined(__AVX512F__)
    DSPARK_UNPACKED(15),
    DSPARK_UNPACKED(31),
    DSPARK_UNPACKED(63),
#endif
#if defined(__AVX2__)
    // The frequent forms are also multiplied as they lie; others are always unpacked first.
    form<U4, false, 1>(),
    form<U4, true, 1>(),
    form<U5, false, 1>(),
    form<U5, true, 1>(),
    form<U6, false, 2>(),
    form<U2, true, 2>(),
    form<U3, false, 2>(),
    form<Nl4, false, 1>(),
    form<Fp4, false, 1>(),
    form<Fp4, false, 2>(),
#endif
};
#undef DSPARK_UNPACKED

/// The functions on codes as they lie, or on codes unpacked to bytes; null if there are none.
const RowTable *rowTableOf(const PackedFormat &format, bool isUnpacked) {
  bool isOffset = format.zero == ZeroKind::Offset || format.zero == ZeroKind::Value; // values become offsets
  int max = maxCode(format.code);
  max = !isUnpacked || sizeof(vf) != 32 ? max : max <= 15 ? 15 : max <= 31 ? 31 : max;
  for (const RowTable &table : kForms)
    if (table.isOffset == isOffset && table.groups == format.scalesPerStep() &&
        table.code == (isUnpacked ? U8 : format.code) && (table.max == max || sizeof(vf) != 32))
      return &table;
  return nullptr;
}

using Unpack = void (*)(const uint8_t *lines, uint8_t *bytes);
Unpack unpacker(CodeKind kind) {
  constexpr Unpack kTable[] = {unpackStep<CodeKind::U2>,  unpackStep<CodeKind::U3>, unpackStep<CodeKind::U4>,
                               unpackStep<CodeKind::U5>,  unpackStep<CodeKind::U6>, unpackStep<CodeKind::U8>,
                               unpackStep<CodeKind::Nl4>, unpackStep<CodeKind::Fp4>};
  return kTable[int(kind)];
}

void int8Panel(const PackedTile &tile, const uint8_t *panel, float *sums) {
  const RowTable *table = tile.rows > kFewRows ? nullptr : rowTableOf(tile.format, false);
  bool isUnpacked = !table && tile.format.code != CodeKind::U8;
  if (!table)
    table = rowTableOf(tile.format, true);
  Unpack unpack = unpacker(tile.format.code);
  float *codes = tile.scratch + 2 * kPackedRows * kPackedColumns;
  uint8_t *bytes = reinterpret_cast<uint8_t *>(codes);
  ChunkReader reader(tile, panel, codes + kChunkTerms * kPackedColumns);
  QuantizedChunk chunk = {{}, tile.quantized, QuantizedRows::rowBytes(tile.quantized.steps)};
  int64_t groups = (tile.rows + table->count - 1) / table->count;
  while (reader.next(chunk.weights)) {
    for (int s = 0; isUnpacked && s < chunk.weights.steps; ++s) {
      unpack(chunk.weights.lines[s], bytes + s * 512);
      chunk.weights.lines[s] = bytes + s * 512;
    }
    // Groups of nearly equal size, so that none is left with one row.
    int64_t row = 0;
    for (int64_t left = groups; left > 0; --left) {
      int64_t rows = (tile.rows - row + left - 1) / left;
      table->rows[rows - 1](chunk, row, sums);
      row += rows;
    }
    chunk.rows.codes += chunk.weights.steps * kStepTerms;
    chunk.rows.scales += chunk.weights.steps;
    chunk.rows.sums += chunk.weights.steps * 2;
  }
}

// --- f32 ---

// Chain j takes terms j, j + 4 ...; a row's chains are added up in order, whether they ran beside each other
// (few rows) or one after the other.
template <int R> void floatRows(const float *w, int64_t terms, const float *const *a, float *sums) {
  constexpr int kAtOnce = R * kVectors <= 2 ? 4 : R * kVectors <= 4 ? 2 : 1;
  vf total[R][kVectors];
  for (int first = 0; first < 4; first += kAtOnce) {
    vf chain[kAtOnce][R][kVectors];
    unroll<kAtOnce * R * kVectors>(DSPARK_LAMBDA { (&chain[0][0][0])[i] = splat(0); });
    auto term = [&](int64_t k, auto c) __attribute__((always_inline)) {
      vf row[kVectors];
      unroll<kVectors>(DSPARK_LAMBDA { row[i] = load(w + k * kPackedColumns + i * kLanes); });
      unroll<R>([&](auto r) __attribute__((always_inline)) {
        vf x = splat(a[r][k]);
        unroll<kVectors>(DSPARK_LAMBDA { chain[c][r][i] = fma(x, row[i], chain[c][r][i]); });
      });
    };
    int64_t k = first;
    for (; k + kAtOnce <= terms; k += 4)
      unroll<kAtOnce>(DSPARK_LAMBDA { term(k + i, i); });
    unroll<kAtOnce - 1>(DSPARK_LAMBDA {
      if (k + i < terms)
        term(k + i, i);
    });
    unroll<kAtOnce>([&](auto c) __attribute__((always_inline)) {
      unroll<R * kVectors>(DSPARK_LAMBDA {
        vf &sum = total[i / kVectors][i % kVectors];
        vf part = chain[c][i / kVectors][i % kVectors];
        sum = first + c == 0 ? part : sum + part;
      });
    });
  }
  unroll<R * kVectors>(DSPARK_LAMBDA {
    float *sum = sums + i * kLanes;
    store(sum, load(sum) + total[i / kVectors][i % kVectors]);
  });
}

using FloatRows = void (*)(const float *, int64_t, const float *const *, float *);
template <int... R> constexpr auto floatTable(std::integer_sequence<int, R...>) {
  struct Table {
    FloatRows rows[sizeof...(R)];
  };
  return Table{{floatRows<R + 1>...}};
}
#if defined(__AVX512F__)
constexpr int kFloatRows = 12;
#elif defined(__AVX2__)
constexpr int kFloatRows = 6;
#else
constexpr int kFloatRows = 2;
#endif
constexpr auto kFloatTable = floatTable(std::make_integer_sequence<int, kFloatRows>());

void halfStep(CodeKind kind, const uint8_t *lines, float *out) {
  for (int k = 0; k < kStepTerms; ++k, out += kPackedColumns, lines += 2 * kPackedColumns)
    if (kind == CodeKind::F16)
      put(out, [&](int at) { return f16At(lines + 2 * at); });
    else if (k % 2 == 0) // [16][2]: the even term is the lower half of each word
      put(out, [&](int at) { return fromBits(*reinterpret_cast<const vwords *>(lines + 4 * at) << 16); });
    else
      put(out, [&](int at) {
        const uint8_t *pairs = lines - 2 * kPackedColumns + 4 * at;
        return fromBits(*reinterpret_cast<const vwords *>(pairs) & int32_t(0xffff0000));
      });
}

// [32][16] weights from codes in bytes, term j of quad q being byte j of each column.
void codesStep(const PackedFormat &format, const uint8_t *bytes, const float *scale, const float *zero,
               float *out) {
  bool isOffset = format.zero == ZeroKind::Offset;
  int quadsPerGroup = int(kQuads) / format.scalesPerStep();
  for (int q = 0; q < kQuads; ++q) {
    int64_t group = q / quadsPerGroup * kPackedColumns;
    unroll<kVectors>(DSPARK_LAMBDA {
      vi four = *reinterpret_cast<const vwords *>(bytes + q * 64 + i * 4 * kLanes);
      vf s = load(scale + group + i * kLanes), z = load(zero + group + i * kLanes);
      for (int j = 0; j < 4; ++j) {
        vf code = floats((four >> (8 * j)) & 255);
        store(out + (q * 4 + j) * kPackedColumns + i * kLanes, isOffset ? code * s + z : (code - z) * s);
      }
    });
  }
}

void floatPanel(const PackedTile &tile, const uint8_t *panel, float *sums) {
  float *weights = tile.scratch + 2 * kPackedRows * kPackedColumns;
  ChunkReader reader(tile, panel, weights + kChunkTerms * kPackedColumns);
  Unpack unpack = tile.format.isFloat() ? nullptr : unpacker(tile.format.code);
  int64_t groups = (tile.rows + kFloatRows - 1) / kFloatRows, done = 0;
  Chunk chunk;
  while (reader.next(chunk)) {
    for (int s = 0; s < chunk.steps; ++s) {
      float *out = weights + s * kStepTerms * kPackedColumns;
      if (!unpack) {
        halfStep(tile.format.code, chunk.lines[s], out);
        continue;
      }
      alignas(64) uint8_t bytes[512];
      unpack(chunk.lines[s], bytes);
      codesStep(tile.format, bytes, chunk.scale[s], chunk.zero[s], out);
    }
    int64_t terms = tile.k - done < chunk.steps * kStepTerms ? tile.k - done : chunk.steps * kStepTerms;
    int64_t row = 0;
    for (int64_t left = groups; left > 0; --left) {
      int64_t rows = (tile.rows - row + left - 1) / left;
      const float *a[kFloatRows];
      for (int64_t r = 0; r < rows; ++r)
        a[r] = tile.a + (row + r) * tile.aRow + done;
      kFloatTable.rows[rows - 1](weights, terms, a, sums + row * kPackedColumns);
      row += rows;
    }
    done += terms;
  }
}

// --- results ---

void panelSums(const PackedTile &tile, int64_t panel, float *sums) {
  __builtin_memset(sums, 0, size_t(tile.rows * kPackedColumns) * sizeof(float));
  const uint8_t *bytes = tile.panels + panel * tile.panelBytes;
  if (tile.isInt8)
    int8Panel(tile, bytes, sums);
  else
    floatPanel(tile, bytes, sums);
}

void finishPanel(const PackedTile &tile, int64_t column, const float *sums, const float *gate) {
  for (int64_t row = 0; row < tile.rows; ++row)
    for (int64_t at = 0; at < kPackedColumns && column + at < tile.columns; at += kLanes) {
      int64_t lanes = tile.columns - column - at < kLanes ? tile.columns - column - at : kLanes;
      vf v = load(sums + row * kPackedColumns + at);
      if (gate) {
        v = activated(tile.epilogue, load(gate + row * kPackedColumns + at)) * v;
      } else {
        if (tile.bias)
          v = v + loadLanes(tile.bias + column + at, lanes);
        if (tile.residual)
          v = v + loadLanes(tile.residual + row * tile.residualRow + column + at, lanes);
        v = activated(tile.epilogue, v);
      }
      storeLanes(tile.c + row * tile.cRow + column + at, v, lanes);
    }
}

void packedTile(const PackedTile &tile) {
  float *sums = tile.scratch, *gate = sums + kPackedRows * kPackedColumns;
  for (int64_t column = 0, panel = 0; column < tile.columns; column += kPackedColumns) {
    if (tile.isGated)
      panelSums(tile, panel++, gate);
    panelSums(tile, panel++, sums);
    finishPanel(tile, column, sums, tile.isGated ? gate : nullptr);
  }
}

// --- rows of A ---

void quantizeRow(const float *row, int64_t k, const PackedFormat &format, const QuantizedRows &out) {
  constexpr int kParts = int(kStepTerms) / kLanes;
  for (int64_t s = 0; s < out.steps; ++s, row += kStepTerms, k -= kStepTerms) {
    vf x[kParts];
    vi most = vi(0);
    for (int p = 0; p < kParts; ++p) {
      int64_t left = k - p * kLanes;
      x[p] = left >= kLanes ? load(row + p * kLanes) : loadLanes(row + p * kLanes, left > 0 ? left : 0);
      vi magnitude = bits(x[p]) & 0x7fffffff;
      most = magnitude > most ? magnitude : most;
    }
    // As bit patterns NaN is more than infinity, and stays. Steps of nothing but tiny numbers keep a scale
    // whose reciprocal is finite.
    float amax = __builtin_bit_cast(float, __builtin_reduce_max(most));
    amax = amax < 0x1p-100f ? 0x1p-100f : amax;
    float scale = amax / 127.0f, by = 127.0f / amax;
    vi halves[2] = {vi(0), vi(0)};
    for (int p = 0; p < kParts; ++p) {
      vi code = nearestInt(x[p] * by);
      *reinterpret_cast<vsbyte *>(out.codes + s * kStepTerms + p * kLanes) =
          __builtin_convertvector(code, vsbyte);
      halves[p * 2 / kParts] += code;
    }
    float half[2] = {float(__builtin_reduce_add(halves[0])), float(__builtin_reduce_add(halves[1]))};
    out.scales[s] = scale;
    float factor = format.zero == ZeroKind::Constant || format.zero == ZeroKind::Byte ? -1 : scale;
    bool isSplit = format.scalesPerStep() == 2;
    out.sums[2 * s] = (isSplit ? half[0] : half[0] + half[1]) * factor;
    out.sums[2 * s + 1] = isSplit ? half[1] * factor : 0;
  }
}

} // namespace
} // namespace dspark
