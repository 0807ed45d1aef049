// Exported decoders become the paged step that checkpoints become (frontends/language/DecoderBuilder.h): each
// row of a ragged batch is a sequence of one token, so that what computes tokens one by one stays as it is;
// attention over past and new keys becomes paged_cache_write and paged_attention on states, positions those
// of the rows, and only rows whose logits are wanted reach the output projection.
#pragma once
#include "frontends/language/DecoderBuilder.h"

namespace dspark::recovery {

struct RecoveredDecoder {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  int64_t vocabulary = 0;
  std::vector<int64_t> windows; // of each layer, as DecoderLayer::window
};

/// `module` is a model after the phases canonicalize and fuse; it is read only. Weights keep their names.
/// Errors: Unsupported, with the node or input that keeps it from being such a step.
StatusOr<RecoveredDecoder> recoverDecoder(mlir::ModuleOp module, int64_t contextLength,
                                          const language::DecoderOptions &options, WeightStore &weights);

/// Of a merged decoder, the module with the branch that takes past keys and values in its place, for the
/// phases canonicalize and fuse to fold; null of others.
mlir::OwningOpRef<mlir::ModuleOp> withCacheBranch(mlir::ModuleOp module);

/// Whether the module's inputs are those of a decoder with caches.
bool looksLikeDecoder(mlir::ModuleOp module);

} // namespace dspark::recovery
