#include "runtime/format/Hash.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dspark {

uint64_t hashBytes(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

struct StreamHash::State {
  XXH3_state_t xxh;
};
StreamHash::StreamHash() : state(new State) { XXH3_64bits_reset(&state->xxh); }
StreamHash::~StreamHash() = default;
void StreamHash::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state->xxh, bytes.data(), bytes.size());
}
uint64_t StreamHash::value() const { return XXH3_64bits_digest(&state->xxh); }

} // namespace dspark
