#include "frontends/language/LatentAttention.h"

using namespace mlir;

namespace dspark::language {

using checkpoint::Matrix;

namespace {

std::string text(int64_t number) { return std::to_string(number); }

} // namespace

Value LatentBuilder::queries(const std::string &block, Value x, Rotate rotate) {
  int64_t size = latent.plain + latent.rotated, all = config.heads * size;
  Value q;
  if (latent.queryRank > 0) {
    Value low = g.matmul(x, block + "attn_q_a", latent.queryRank, config.hidden);
    low = g.norm(low, block + "attn_q_a_norm", latent.queryRank, latent.normEpsilon);
    q = g.matmul(low, block + "attn_q_b", all, latent.queryRank);
  } else {
    q = g.matmul(x, block + "attn_q", all, config.hidden);
  }
  q = g.reshape(q, {"rows", text(config.heads), text(size)});
  Value plain = g.slice(q, 2, 0, latent.plain), turned = g.slice(q, 2, latent.plain, size);
  turned = rotate(g.reshape(turned, {"1", "rows", text(config.heads * latent.rotated)}), config.heads);
  turned = g.reshape(turned, {"rows", text(config.heads), text(latent.rotated)});
  return g.concat({g.perHead(plain, block + "attn_k_b", keyFactors(block)), turned}, 2);
}

Value LatentBuilder::row(const std::string &block, Value x, Rotate rotate) {
  Value both = g.matmul(x, block + "attn_kv_a_mqa", latent.rowSize(), config.hidden);
  Value low =
      g.norm(g.slice(both, 2, 0, latent.rank), block + "attn_kv_a_norm", latent.rank, latent.normEpsilon);
  Value turned = rotate(g.slice(both, 2, latent.rank, latent.rowSize()), 1);
  return g.reshape(g.concat({low, turned}, 2), {"rows", "1", text(latent.rowSize())});
}

Value LatentBuilder::values(const std::string &block, Value attended) {
  Value y = g.perHead(attended, block + "attn_v_b", valueFactors(block));
  return g.reshape(y, {"1", "rows", text(config.heads * latent.value)});
}

// U_k^T of each head, [rank][plain].
std::vector<Matrix> LatentBuilder::keyFactors(const std::string &block) {
  return g.has(block + "attn_k_b") ? g.expertsOf(block + "attn_k_b", config.heads, latent.rank, latent.plain)
                                   : headsOf(block, 0, latent.plain, /*isTransposed=*/true);
}

// U_v of each head, [value][rank].
std::vector<Matrix> LatentBuilder::valueFactors(const std::string &block) {
  return g.has(block + "attn_v_b") ? g.expertsOf(block + "attn_v_b", config.heads, latent.value, latent.rank)
                                   : headsOf(block, latent.plain, latent.value, /*isTransposed=*/false);
}

// Rows [first, first + count) of each head's part of attn_kv_b.
std::vector<Matrix> LatentBuilder::headsOf(const std::string &block, int64_t first, int64_t count,
                                           bool isTransposed) {
  int64_t perHead = latent.plain + latent.value;
  std::optional<Matrix> all = g.matrixOf(block + "attn_kv_b", config.heads * perHead, latent.rank);
  std::vector<Matrix> heads;
  if (!all)
    return heads;
  Matrix shared = checkpoint::madeOnce(*all, config.heads);
  for (int64_t head = 0; head < config.heads; ++head) {
    Matrix part = shared.slice(head * perHead + first, count);
    heads.push_back(isTransposed ? checkpoint::transposed(part) : part);
  }
  return heads;
}

} // namespace dspark::language
