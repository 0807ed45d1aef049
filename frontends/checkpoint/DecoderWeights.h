// The tensors of a decoder-only language model, whatever file they come from.
//
// Tensors have GGUF's names without ".weight": token_embd, output_norm, output, and per layer
// blk.<i>.attn_norm, attn_q, attn_k, attn_v, attn_output, attn_q_norm, attn_k_norm, post_attention_norm,
// ffn_norm, ffn_gate, ffn_up, ffn_down, post_ffw_norm; of mixtures of experts ffn_gate_inp (the router),
// ffn_gate_exps, ffn_up_exps, ffn_down_exps, exp_probs_b.bias and, for all rows, ffn_gate_shexp,
// ffn_up_shexp, ffn_down_shexp; of latent attention attn_q_a, attn_q_a_norm, attn_q_b, attn_kv_a_mqa,
// attn_kv_a_norm, and attn_k_b [heads][rank][plain] with attn_v_b [heads][value][rank], or attn_kv_b
// [heads][plain + value][rank]. Biases end in ".bias".
#pragma once
#include "runtime/base/Status.h"
#include "runtime/format/PackedBits.h"
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dspark::checkpoint {

/// y = x W^T with W [n][k]. Its bytes come as rows or, where a file has scales and codes apart, as blocks.
struct Matrix {
  /// The packed layout (docs/packed-weights.md) that holds it without loss; "": rows of f32.
  std::string layout;
  int64_t n = 0, k = 0;
  int64_t rowBytes = 0; // of one row, as `layout`'s source has them
  /// All rows; in the checkpoint's file, or made into `storage`. Keeps the file open.
  std::function<StatusOr<std::span<const std::byte>>(std::vector<std::byte> &storage)> rows;
  /// Or blocks of `layout`, which keep what they read from alive.
  std::function<StatusOr<std::shared_ptr<const BlockSource>>()> blocks;
  /// The order in which blocks hold the terms, where it is not theirs (GPTQ's act-order): y is then the
  /// product with x's terms in this order.
  std::vector<int64_t> termOrder;

  bool isBlocks() const { return layout != "" && !PackedFormat::named(layout)->isFloat(); }
  /// Rows [first, first + count) as a matrix of their own.
  Matrix slice(int64_t first, int64_t count) const;
};

/// Bytes of the packed weight; `isGated` interleaves the panels of its two halves (matmul's `gated`). Errors:
/// sizes that overflow, a layout that cannot be gated.
StatusOr<std::vector<std::byte>> packMatrix(const Matrix &matrix, bool isGated);
/// The matrix in the layout "f32", of weights that are floats.
Matrix asFloats(const Matrix &matrix);
/// Its columns as rows. Of weights in few bits the values become f32.
Matrix transposed(const Matrix &matrix);
/// The matrix for readers that want its rows `uses` times, one reading behind the other: rows that have to be
/// made are made once.
Matrix madeOnce(const Matrix &matrix, int64_t uses);
/// The rows of `first` above those of `second`, which must have the same layout, k and order of terms.
Matrix stack(const Matrix &first, const Matrix &second);

class DecoderWeights {
public:
  virtual ~DecoderWeights() = default;
  virtual bool has(std::string_view name) const = 0;
  /// Errors: no such tensor, other dims (both named), an element type without a layout.
  virtual StatusOr<Matrix> matrix(std::string_view name, int64_t n, int64_t k) const = 0;
  /// The matrices [n][k] of `count` experts, all of one layout or all of floats. Errors: as matrix();
  /// Unsupported if layouts differ.
  virtual StatusOr<std::vector<Matrix>> experts(std::string_view name, int64_t count, int64_t n,
                                                int64_t k) const = 0;
  /// A vector in f32: norms and biases. Errors: as matrix().
  virtual StatusOr<std::vector<float>> vector(std::string_view name, int64_t n) const = 0;
};

} // namespace dspark::checkpoint
