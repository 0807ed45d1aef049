// Attention of many rows with queries, keys, weights and values rounded to bf16, by vdpbf16ps: pairs of
// elements of a query and a key, and of weights and values of two keys, the first of which is an even one of
// the block. Sums, exponentials and what merges blocks are of f32; weights add up before they are rounded.
//
// An instruction adds the product of the odd elements, then that of the even ones, each rounded once. Pairs
// that not all rows of a tile see are added likewise, by multiply-adds, so a row's result depends on what it
// sees alone.
#include "kernels/attention/attention_core.h"
#include "kernels/attention/pair_tiles.h"
#include "kernels/attention/score_panels.h"

namespace dspark {
constinit const AttentionCore kAttentionCoreAvx512Bf16 = {
    0, roundQueries, packPairs, scores, {}, weighInPairs, {pairValues}, merge, finish,
};

} // namespace dspark
