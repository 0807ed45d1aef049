// The parts of an exported decoder that a paged step replaces: where tokens, positions and caches come in,
// and the attention of each layer over past and new keys.
//
//   K = concat(past, k, axis 2), or the past tensor with k written behind it; returned as "present"
//   Y = attention(q, repeat(K), repeat(V), mask)
//
// A mask is known by what it does, not by how it is spelled: it is evaluated for a few lengths
// (MaskForm.cpp).
#pragma once
#include "compiler/Recovery/Probe.h"
#include "compiler/Recovery/TokenWise.h"
#include "runtime/base/Status.h"

namespace dspark::recovery {

struct AttentionSite {
  mlir::Operation *op = nullptr;
  mlir::BlockArgument pastKey, pastValue;
  mlir::Value query, key, value; // [batch, heads, sequence, size] or [batch, sequence, heads * size]
  int64_t heads = 0, kvHeads = 0, size = 0, valueSize = 0;
  int64_t window = -1; // tokens that a token sees, itself included; -1: all
  double scale = 0, softcap = 0;
  std::vector<float> slopes; // of each head's scores by distance (ALiBi); empty: none
};

struct DecoderPattern {
  mlir::BlockArgument tokens, positions, mask; // positions and mask may be null
  TokenSymbols symbols;
  std::string past; // the symbol of the past's length
  std::vector<AttentionSite> layers;
  mlir::Value logits; // [batch, sequence, vocabulary], or of the last tokens
  int64_t vocabulary = 0;
};

/// Whether the function has tokens and caches of keys and values among its inputs, by name.
bool isDecoder(mlir::func::FuncOp func);

class PatternMatcher {
public:
  PatternMatcher(mlir::func::FuncOp func, ir::DimAnalysis &analysis, const WeightStore &weights,
                 int64_t contextLength)
      : func(func), analysis(analysis), weights(weights), contextLength(contextLength) {}

  /// Errors: Unsupported, with the node or input that does not fit.
  StatusOr<DecoderPattern> match();
  /// Whether an integer value [1 or batch, sequence] is each token's place in its sequence.
  bool isPositions(const DecoderPattern &pattern, mlir::Value value);

private:
  struct Lengths {
    int64_t past, fresh;
  };
  struct MaskForm {
    int64_t window; // tokens that a token sees
    /// What a head's scores of a token lose by each token between: one for all heads, one each, or none.
    std::vector<double> slopes;
  };
  struct Grown {
    mlir::BlockArgument past;
    mlir::Value fresh;
  };

  Status matchInputs(DecoderPattern &pattern);
  StatusOr<AttentionSite> matchAttention(const DecoderPattern &pattern, mlir::Operation *op);
  Status matchSizes(AttentionSite &site, const ir::AttrList &attributes);
  std::optional<Grown> grownOf(mlir::Value value);
  mlir::Value withoutRepeat(mlir::Value value);
  bool isReturned(mlir::Value value);
  Status matchMask(const DecoderPattern &pattern, AttentionSite &site, mlir::Value mask);
  StatusOr<MaskForm> formOf(const DecoderPattern &pattern, mlir::Operation *op, mlir::Value mask);
  std::optional<MaskForm> formAt(const DecoderPattern &pattern, mlir::Value mask, Lengths lengths);
  Probe probe(const DecoderPattern &pattern, Lengths lengths);

  mlir::func::FuncOp func;
  ir::DimAnalysis &analysis;
  const WeightStore &weights;
  int64_t contextLength;
  std::map<void *, MaskForm> forms; // of masks, by opaque pointer
};

/// "node 'x': what is wrong".
Status atNode(mlir::Operation *op, const std::string &what);

} // namespace dspark::recovery
