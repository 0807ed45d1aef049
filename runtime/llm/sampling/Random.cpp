#include "runtime/llm/sampling/Random.h"

namespace dspark::llm {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiply0 = 0xD2511F53, kMultiply1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = kMultiply0 * c[0], b = kMultiply1 * c[2];
    c = {uint32_t(b >> 32) ^ c[1] ^ key[0], uint32_t(b), uint32_t(a >> 32) ^ c[3] ^ key[1], uint32_t(a)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return c;
}

double uniform(RandomKey key, uint64_t position, Purpose purpose) {
  const auto bits =
      philox4x32({uint32_t(position), uint32_t(position >> 32), key.sequence, uint32_t(purpose)},
                 {uint32_t(key.seed), uint32_t(key.seed >> 32)});
  return double((uint64_t(bits[1]) << 32 | bits[0]) >> 11) * 0x1p-53;
}

} // namespace dspark::llm
