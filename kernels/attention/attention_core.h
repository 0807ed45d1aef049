// The inner loops of attention in f32, one table per ISA level (attention_core_impl.h is compiled three
// times), and those in bf16 (attention_core_avx512bf16.cpp). Bound: multiply-adds for many query rows, K and
// V bandwidth for one.
//
// Online softmax over blocks of kKeyBlock keys (Milakov and Gimelshein 2018; FlashAttention). Blocks start at
// multiples of kKeyBlock counted from a sequence's first key. Every block gives a row its own maximum, sum
// and weighted values (AttentionPart); these are merged in ascending order:
//
//   pack     K^T of 16 keys at a time         so that scores come in lanes, whatever the width
//   scores   S[r][j] = q[r] . k[j]            in one chain of d ascending, or with AVX-512 in 8, of every 8th
//                                             d each, which are added in order
//   weigh    P[r][j] = exp(S - max)           lane j of a block adds to lane j % kLanes of the sum
//   values   o[r] += sum_j P[r][j] v[j]       j ascending, in one chain per element
//   merge    total = total e^(..) + block e^(..)
//
// So a row's result depends on its own query and visible keys only: not on how many rows, tiles, threads or
// splits of the context there are, and the same whether the row is prefilled, decoded or verified.
#pragma once
#include "kernels/common/isa.h"
#include <cstdint>

namespace dspark {

inline constexpr int64_t kKeyBlock = 256;
inline constexpr int64_t kChunkBlocks = 4, kChunk = kChunkBlocks * kKeyBlock;
/// Keys of one packed panel, and what widths of value rows are padded to: the lanes of the widest level.
inline constexpr int64_t kKeyPanel = 16;

/// Pointers to keys or values end with so many to the rows that are read next, which the loops ask for while
/// they compute.
inline constexpr int64_t kRowsAhead = 32;

/// What a key or value row's elements are where a loop reads it.
enum class RowType { F32, F16, BF16 };
inline constexpr int kRowTypes = 3;

/// What one row has of one block, or of all so far, beside its weighted values: their common factor is
/// exp(max), their weights add up to sum.
struct AttentionPart {
  float max = -__builtin_inff(), sum = 0;
};

struct AttentionCore {
  /// Up to so many query rows take keys and values as they lie: packing or widening serves them too rarely.
  int64_t directRows;
  /// What q's rows become before they meet keys, where they lie; or null.
  void (*arrangeQueries)(float *q, int64_t rows, int64_t size);
  /// panel[d][j] = rows[j][d] of kKeyPanel rows of f32, which may repeat.
  void (*pack)(const void *const *rows, int64_t size, float *panel);
  /// q is [rows][size], scores [rows][kKeyBlock]; panels of `keys` keys lie one behind the other.
  void (*scores)(const float *q, int64_t rows, int64_t size, const float *panels, int64_t keys,
                 float *scores);
  /// The same of the keys of whole panels, which may repeat, as rows of a RowType; for up to directRows rows
  /// of q. Null where the level has no conversion in registers: such rows are widened before.
  void (*keyScores[kRowTypes])(const float *q, int64_t rows, int64_t size, const void *const *keys,
                               int64_t count, float *scores);
  /// Scores [low, high) of a row become weights. softcap 0 is none; a null bias is zero; -inf in it hides.
  AttentionPart (*weigh)(float *row, int64_t low, int64_t high, float softcap, const float *bias);
  /// out [rows][width] += the values [begin, end) of the block that row r sees, [low[r], high[r]);
  /// `values` points to the rows of value `begin` onwards, by RowType as above; `ahead`: and to kRowsAhead
  /// behind them. Values that a row does not see are not touched.
  void (*values[kRowTypes])(const float *weights, const int32_t *low, const int32_t *high, int64_t rows,
                            const void *const *values, int64_t begin, int64_t end, bool ahead, int64_t width,
                            float *out);
  /// Joins a block's part and values into the total.
  void (*merge)(AttentionPart &total, float *totalValues, const AttentionPart &part, const float *values,
                int64_t width);
  /// y = values / sum, with `sink` (or -inf) as one more score whose value is 0; rows that see nothing become
  /// `unseen`, which is 0 or NaN.
  void (*finish)(const AttentionPart &total, const float *values, float sink, float unseen, int64_t width,
                 float *y);
};

extern const AttentionCore kAttentionCoreBaseline, kAttentionCoreAvx2, kAttentionCoreAvx512;
/// Of operands rounded to bf16; where multipliesBf16().
extern const AttentionCore kAttentionCoreAvx512Bf16;

inline const AttentionCore &attentionCore(Isa isa) {
  return isa == Isa::Avx512 ? kAttentionCoreAvx512
         : isa == Isa::Avx2 ? kAttentionCoreAvx2
                            : kAttentionCoreBaseline;
}

} // namespace dspark
