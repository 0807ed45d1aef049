// The host side of the paged key-value cache: which page belongs to whom. Every page is free, cached (full,
// of a known text, wanted by nobody just now) or owned by one or more sequences. Full pages are published and
// shared between sequences with the same prefix; a page is written only by a sequence that owns it alone.
// Where no layer of the model sees further back than a window, pages behind it are given back as a sequence
// grows. Paging follows Kwon et al. 2023 (PagedAttention).
#pragma once
#include "runtime/llm/cache/PageIndex.h"
#include "runtime/llm/cache/PageList.h"
#include "runtime/llm/model/ForwardModel.h"

namespace dspark::llm {

class PageCache;

/// The pages of one sequence. It gives them back when it goes; its cache must outlive it.
class CachedSequence {
public:
  CachedSequence() = default;
  CachedSequence(CachedSequence &&other) noexcept { *this = std::move(other); }
  CachedSequence &operator=(CachedSequence &&other) noexcept;
  ~CachedSequence() { release(); }

  void release();
  /// Tokens whose keys and values are in the pages.
  int64_t length() const { return tokens; }
  /// Page j holds tokens j * pageSize and on; those reserved for the next step come last. -1: given back,
  /// since no row to come sees these tokens.
  std::span<const int32_t> pages() const { return table; }

private:
  friend class PageCache;
  PageCache *cache = nullptr;
  int64_t tokens = 0;
  int64_t passed = 0; // pages at the front that are given back
  std::vector<int32_t> table;
  std::vector<PageIndex::Node> nodes; // of full pages, where prefixes are shared
  std::string salt;
};

struct CacheStatistics {
  int64_t askedTokens = 0;  // in open()
  int64_t sharedTokens = 0; // of these, found in pages
  int64_t evictions = 0;    // cached pages taken for other text
  int64_t copies = 0;       // of pages, to write one that others read
};

/// One caller at a time.
class PageCache {
public:
  struct Options {
    bool sharePrefixes = true;
    PageIndex::Hash hash = &PageIndex::hashOf;
  };
  explicit PageCache(ForwardModel &model) : PageCache(model, Options()) {}
  PageCache(ForwardModel &model, Options options);

  /// A sequence that starts with the pages already known for the text. Its last token is always left to
  /// compute, for its logits. Sequences share only with those of the same salt.
  CachedSequence open(std::span<const int32_t> tokens, std::string_view salt = {});
  /// Another sequence with the same tokens: all pages are shared until one of both writes.
  CachedSequence fork(const CachedSequence &sequence);

  /// Makes room for `count` tokens after the sequence's length, in pages that it alone owns. False: too few
  /// pages, and nothing has changed. Errors are those of copying a page.
  StatusOr<bool> reserve(CachedSequence &sequence, int64_t count);
  /// The step has written up to tokens.size(), all of the sequence's tokens; room beyond is given back.
  void commit(CachedSequence &sequence, std::span<const int32_t> tokens);
  /// Forgets the tokens from `length` on, and room beyond; all of them, if pages that the next row would see
  /// are given back.
  void truncate(CachedSequence &sequence, int64_t length);

  int64_t pageSize() const { return size; }
  int64_t pagesFor(int64_t tokens) const { return (tokens + size - 1) / size; }
  int64_t totalPages() const { return int64_t(owners.size()); }
  /// Free or cached: what reserve() can still give out.
  int64_t availablePages() const { return freePages.size() + cachedPages.size(); }
  const CacheStatistics &statistics() const { return counts; }

  /// Whether every page is free, cached or owned exactly as often as these sequences, all there are, say.
  /// Errors: Internal, with the page.
  Status check(std::span<const CachedSequence *const> sequences) const;

private:
  friend class CachedSequence;
  int32_t take();
  void own(int32_t page);
  void disown(int32_t page);
  void shrink(CachedSequence &sequence, int64_t pages);
  int64_t pagesBehindWindow(int64_t tokens) const;
  void releasePassed(CachedSequence &sequence);
  Status makeWritable(int32_t &page);
  void publish(CachedSequence &sequence, std::span<const int32_t> tokens);

  ForwardModel &model;
  bool sharePrefixes;
  int64_t size;
  PageIndex index;
  PageList freePages, cachedPages; // cached: the least recently used first
  std::vector<int32_t> owners;     // of each page, how many
  CacheStatistics counts;
};

} // namespace dspark::llm
