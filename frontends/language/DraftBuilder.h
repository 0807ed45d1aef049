// A draft (frontends/checkpoint/DraftConfig.h) as functions beside a model's `main`. They read the hidden
// states that `main` keeps (DecoderBuilder.h), at given slots (page * page_size + place) of that cache, and
// have keys and values in a paged cache of their own; runtime/llm/speculation runs them.
//
// Block drafts. Context rows are hidden states of committed tokens: each layer makes its keys and values of
// them, and nothing else. Block rows are an anchor and masks; each sees the whole context and its whole
// block. A step writes both, in so many pieces as `write_offsets` says:
//
//   draft(context_slots i32[context], context_positions i32[context], tokens i32[rows], positions i32[rows],
//         write_offsets i32[writes + 1], write_lengths i32[writes], write_table i32[writes, table_pages],
//         block_offsets i32[blocks + 1], block_lengths i32[blocks], block_table i32[blocks, table_pages],
//         logit_rows i32[wanted], hidden_states [.., 1, .., taps * hidden], key_cache.<i>, value_cache.<i>)
//     -> logits f32[wanted, vocabulary], hidden f32[wanted, hidden]
//
// Writes are of the context's rows first, then of the block's. The sequential head that makes a block's
// drafts depend on each other, and the confidence, row by row:
//
//   draft_head(tokens i32[rows], hidden f32[rows, hidden], logits f32[rows, vocabulary], state f32[rows,
//   rank])
//     -> logits f32[rows, vocabulary], confidence f32[rows], state f32[rows, rank]
//
// with `tokens` those before the rows, confidence a logit; state is there if the head is recurrent,
// confidence if the draft has it.
//
// EAGLE-3. Row i is the pair of the hidden state of token i and token i + 1, at position i; rows beyond the
// hidden states take the function's own `hidden` in their place. Rows with hidden states come first:
//
//   draft(context_slots i32[context], features f32[drafted, hidden], tokens i32[context + drafted],
//         positions i32[context + drafted], query_offsets i32[sequences + 1], sequence_lengths
//         i32[sequences], block_table i32[sequences, table_pages], logit_rows i32[wanted], hidden_states,
//         key_cache.0, value_cache.0)
//     -> logits f32[wanted, vocabulary], hidden f32[wanted, hidden]
#pragma once
#include "frontends/checkpoint/DraftWeights.h"
#include "frontends/language/DecoderBuilder.h"

namespace dspark::language {

/// Adds the draft's functions to the module. Errors: those of `weights`; Internal, if an operation of the
/// graph does not verify.
Status buildDraft(const checkpoint::DraftConfig &config, const checkpoint::DraftWeights &weights,
                  const DecoderOptions &options, mlir::ModuleOp module, WeightStore &store);

} // namespace dspark::language
