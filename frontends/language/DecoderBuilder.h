// A decoder-only language model as a function of the `dspark` dialect: one ragged step over a paged cache,
// that serves prefill, decode and verification alike (runtime/llm/model/ForwardModel.h says what the operands
// mean).
//
//   main(tokens i32[rows], positions i32[rows], query_offsets i32[sequences + 1], sequence_lengths
//   i32[sequences],
//        block_table i32[sequences, table_pages], logit_rows i32[wanted],
//        key_cache.<i>, value_cache.<i> [pages, kvHeads, page_size, headSize] ..., each after key_scales.<i>
//        or value_scales.<i> f32[pages, kvHeads, page_size] if it is of i8; of latent attention only
//        key_cache.<i> [pages, 1, page_size, rank + rotated])
//     -> logits f32[wanted, vocabulary]
//
// The caches are states: a step writes its rows' keys and values where they lie. With taps there is one more,
// hidden_states [pages, 1, page_size, taps * hidden]: of each row what chosen layers made of it, for
// drafters.
#pragma once
#include "dialects/DSpark/OpFactory.h"
#include "dialects/DSpark/WeightStore.h"
#include "frontends/checkpoint/DecoderConfig.h"
#include "frontends/checkpoint/DecoderWeights.h"
#include "mlir/IR/BuiltinOps.h"

namespace dspark::language {

struct DecoderOptions {
  DType cacheType = DType::F16; // f32, f16, bf16, or i8 with a scale per row
  /// How rows meet weights of few bits (docs/packed-weights.md): quantised to 8 bits per 32 terms, as
  /// llama.cpp does, or as they are, at half the speed or less.
  bool int8Arithmetic = true;
  /// Layers whose results drafters read, ascending, from 0; -1 is the embedding.
  std::vector<int64_t> taps;
};

/// Of hidden_states: not i8 with a scale per row, for a few elements are far larger than the others, nor f16,
/// which these exceed.
inline DType tapType(const DecoderOptions &options) {
  return options.cacheType == DType::F32 ? DType::F32 : DType::BF16;
}

/// Adds `main` to the module. Errors: those of `weights`; InvalidArgument for taps that the model does not
/// have; Internal, if an operation of the graph does not verify.
Status buildDecoder(const checkpoint::DecoderConfig &config, const checkpoint::DecoderWeights &weights,
                    const DecoderOptions &options, mlir::ModuleOp module, WeightStore &store);

/// Adds a function that leaves out all but some layers, ascending: what the model drafts with by itself. It
/// computes the same batches in the caches that `main` has of these layers, and shares its weights. Errors:
/// as buildDecoder; InvalidArgument for layers that the model does not have.
Status buildSelfDraft(const checkpoint::DecoderConfig &config, const checkpoint::DecoderWeights &weights,
                      const DecoderOptions &options, llvm::StringRef function, llvm::ArrayRef<int64_t> layers,
                      mlir::ModuleOp module, WeightStore &store);

} // namespace dspark::language
