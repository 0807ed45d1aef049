// Packed weights times rows of 8 bits (packed.h), chunk by chunk. Included once per ISA level.
#pragma once
#include "kernels/matmul/packed_few_rows.h"

namespace dspark {
namespace {

struct QuantizedChunk {
  Chunk weights;
  QuantizedRows rows; // from the chunk's first step on
};

// Rows [row, row + R) of one chunk. Z: what a group's second number is.
template <CodeKind K, int Max, ZeroKind Z, int Groups, int R>
void int8Rows(const QuantizedChunk &chunk, int64_t row, float *sums) {
  constexpr int kCount = int(kQuads) / Groups;
  const Chunk &weights = chunk.weights;
  sums += row * kPackedColumns;
  RowCursors<Max, R> rows(chunk.rows, row);
  vf sum[R][kVectors];
  unroll<R * kVectors>(DSPARK_LAMBDA { sum[i / kVectors][i % kVectors] = load(sums + i * kLanes); });
  for (int s = 0; s < weights.steps; ++s) {
    vf joined[R][kVectors];
    unroll<Groups>([&](auto g) __attribute__((always_inline)) {
      vf scale[kVectors], zero[kVectors];
      unroll<kVectors>(DSPARK_LAMBDA {
        scale[i] = load(weights.scale[s] + g * kPackedColumns + i * kLanes);
        zero[i] = load(weights.zero[s] + g * kPackedColumns + i * kLanes);
      });
      addGroup<K, Max, Z, g * kCount, kCount>(weights.lines[s], rows, scale, zero, joined, sum);
    });
    rows.next();
  }
  unroll<R * kVectors>(DSPARK_LAMBDA { store(sums + i * kLanes, sum[i / kVectors][i % kVectors]); });
}

using Int8Rows = void (*)(const QuantizedChunk &, int64_t row, float *sums);
/// The functions for 1 .. count rows of one form of weights.
struct RowTable {
  int max;
  ZeroKind zero;
  int groups;
  const Int8Rows *rows;
  int count;
};

template <CodeKind K, int Max, ZeroKind Z, int Groups, int... R>
constexpr Int8Rows kRowFunctions[] = {int8Rows<K, Max, Z, Groups, R + 1>...};
template <CodeKind K, int Max, ZeroKind Z, int Groups, int... R>
constexpr RowTable rowTable(std::integer_sequence<int, R...>) {
  return {Max, Z, Groups, kRowFunctions<K, Max, Z, Groups, R...>, int(sizeof...(R))};
}
template <CodeKind K, ZeroKind Z, int Groups, int Max = maxCode(K)> constexpr RowTable form() {
  return rowTable<K, Max, Z, Groups>(std::make_integer_sequence<int, rowsAtOnce(K, Max, Groups)>());
}

using enum CodeKind;
using enum ZeroKind;
#define DSPARK_UNPACKED(max)                                                                                 \
  form<U8, Byte, 1, max>(), form<U8, Byte, 2, max>(), form<U8, Offset, 1, max>(), form<U8, Offset, 2, max>()
constexpr RowTable kForms[] = {
    DSPARK_UNPACKED(255),
#if defined(__AVX512F__)
    form<U8, Constant, 1>(),
    form<U8, Constant, 2>(),
#elif defined(__AVX2__)
    DSPARK_UNPACKED(15),
    DSPARK_UNPACKED(31),
    DSPARK_UNPACKED(63),
#endif
};
#undef DSPARK_UNPACKED

const RowTable &rowTableOf(const PackedFormat &format) {
  bool isOffset = format.zero == Offset || format.zero == Value; // values become offsets
  ZeroKind zero = isOffset ? Offset : isStarted(format.zero) ? Constant : Byte;
  int max = maxCode(format.code);
  max = sizeof(vf) != 32 || max > 63 ? 255 : max <= 15 ? 15 : max <= 31 ? 31 : 63;
  const RowTable *table = kForms;
  while (table->zero != zero || table->groups != format.scalesPerStep() || table->max != max)
    ++table;
  return *table;
}

void int8Panel(const PackedTile &tile, const uint8_t *panel, float *sums) {
  const FewRowsTable *few = fewRowsTableOf(tile.format, tile.rows);
  if (few)
    return evenBlocks(0, tile.rows, few->count,
                      [&](int64_t rows, int64_t row) { few->rows[rows - 1](tile, panel, row, sums); });
  __builtin_memset(sums, 0, size_t(tile.rows * kPackedColumns) * sizeof(float));
  const RowTable &table = rowTableOf(tile.format);
  bool isUnpacked = tile.format.code != CodeKind::U8;
  Unpack unpack = unpacker(tile.format.code);
  float *codes = tile.scratch + 2 * kPackedRows * kPackedColumns;
  uint8_t *bytes = reinterpret_cast<uint8_t *>(codes);
  ChunkReader reader(tile, panel, codes + kChunkTerms * kPackedColumns);
  QuantizedChunk chunk = {{}, tile.quantized};
  while (reader.next(chunk.weights)) {
    for (int s = 0; isUnpacked && s < chunk.weights.steps; ++s) {
      unpack(chunk.weights.lines[s], bytes + s * 512);
      chunk.weights.lines[s] = bytes + s * 512;
    }
    evenBlocks(0, tile.rows, table.count,
               [&](int64_t rows, int64_t row) { table.rows[rows - 1](chunk, row, sums); });
    chunk.rows.records += chunk.weights.steps * (chunk.rows.codeBytes + kRowNumberBytes);
  }
}

} // namespace
} // namespace dspark
