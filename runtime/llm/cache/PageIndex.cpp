#include "runtime/llm/cache/PageIndex.h"
#include <algorithm>
#include <bit>

namespace dspark::llm {
namespace {

// The finalizer of MurmurHash3: every input bit changes every output bit with probability near one half.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

} // namespace

uint64_t PageIndex::hashOf(Node parent, std::string_view salt, std::span<const int32_t> tokens) {
  uint64_t state = mix(parent + 0x9e3779b97f4a7c15ull) ^ std::hash<std::string_view>()(salt);
  for (int32_t token : tokens)
    state = mix(std::rotl(state, 27) ^ uint32_t(token));
  return state;
}

PageIndex::PageIndex(int64_t pages, int64_t pageSize, Hash hash)
    : pageSize(pageSize), hash(hash), entries(size_t(pages)), tokens(size_t(pages * pageSize)) {}

bool PageIndex::matches(int32_t page, Node parent, std::string_view salt,
                        std::span<const int32_t> wanted) const {
  const Entry &entry = entries[size_t(page)];
  const auto held = tokensOf(page);
  return entry.parent == parent && entry.salt == salt &&
         std::equal(held.begin(), held.end(), wanted.begin(), wanted.end());
}

PageIndex::Found PageIndex::find(Node parent, std::string_view salt, std::span<const int32_t> wanted) const {
  if (parent != kRoot)
    salt = {};
  const auto [begin, end] = byHash.equal_range(hash(parent, salt, wanted));
  for (auto place = begin; place != end; ++place)
    if (matches(place->second, parent, salt, wanted))
      return {place->second, entries[size_t(place->second)].node};
  return {};
}

PageIndex::Node PageIndex::publish(int32_t page, Node parent, std::string_view salt,
                                   std::span<const int32_t> content) {
  if (parent != kRoot)
    salt = {};
  entries[size_t(page)] = {++latest, parent, hash(parent, salt, content), std::string(salt)};
  std::copy(content.begin(), content.end(), tokens.begin() + int64_t(page) * pageSize);
  byHash.emplace(entries[size_t(page)].hash, page);
  return latest;
}

void PageIndex::withdraw(int32_t page) {
  auto [place, end] = byHash.equal_range(entries[size_t(page)].hash);
  while (place->second != page)
    ++place;
  byHash.erase(place);
  entries[size_t(page)] = {};
}

bool PageIndex::consistent() const {
  size_t count = 0;
  for (size_t page = 0; page < entries.size(); ++page) {
    const Entry &entry = entries[page];
    if (entry.node == kRoot)
      continue;
    ++count;
    if (find(entry.parent, entry.salt, tokensOf(int32_t(page))).page != int32_t(page))
      return false;
  }
  return count == byHash.size();
}

} // namespace dspark::llm
