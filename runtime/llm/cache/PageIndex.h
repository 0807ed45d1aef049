// Which full page holds the keys and values of which text. A page is known by the page before it and its own
// tokens, so pages form a tree, and a path from the root is a prefix. The hash only finds: parent and tokens
// are compared, and no collision can show a request another's text.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dspark::llm {

class PageIndex {
public:
  /// Of a published page, never given again. kRoot is what the first pages of all sequences hang on.
  using Node = uint64_t;
  static constexpr Node kRoot = 0;

  using Hash = uint64_t (*)(Node parent, std::string_view salt, std::span<const int32_t> tokens);
  static uint64_t hashOf(Node parent, std::string_view salt, std::span<const int32_t> tokens);

  /// `hash` is for tests that want collisions.
  PageIndex(int64_t pages, int64_t pageSize, Hash hash = &hashOf);

  struct Found {
    int32_t page = -1; // -1: none
    Node node = kRoot;
  };
  /// The page of these [pageSize] tokens after `parent`. `salt` separates requests that must not share, and
  /// counts below the root only: deeper nodes already hang on a salted one.
  Found find(Node parent, std::string_view salt, std::span<const int32_t> tokens) const;

  /// find() must not have found these. The page must not be published.
  Node publish(int32_t page, Node parent, std::string_view salt, std::span<const int32_t> tokens);
  void withdraw(int32_t page);
  bool published(int32_t page) const { return entries[size_t(page)].node != kRoot; }

  /// Whether every published page is found under its own key, and nothing else is.
  bool consistent() const;

private:
  struct Entry {
    Node node = kRoot; // kRoot: not published
    Node parent = kRoot;
    uint64_t hash = 0;
    std::string salt; // of first pages
  };
  std::span<const int32_t> tokensOf(int32_t page) const {
    return {tokens.data() + int64_t(page) * pageSize, size_t(pageSize)};
  }
  bool matches(int32_t page, Node parent, std::string_view salt, std::span<const int32_t> wanted) const;

  int64_t pageSize;
  Hash hash;
  Node latest = kRoot;
  std::vector<Entry> entries;                        // of each page
  std::vector<int32_t> tokens;                       // [pages][pageSize], of published ones
  std::unordered_multimap<uint64_t, int32_t> byHash; // pages
};

} // namespace dspark::llm
