#include "runtime/llm/cache/PageCache.h"
#include <algorithm>

namespace dspark::llm {

CachedSequence &CachedSequence::operator=(CachedSequence &&other) noexcept {
  release();
  std::swap(cache, other.cache);
  std::swap(tokens, other.tokens);
  std::swap(passed, other.passed);
  table.swap(other.table);
  nodes.swap(other.nodes);
  salt.swap(other.salt);
  return *this;
}

void CachedSequence::release() {
  if (cache)
    cache->truncate(*this, 0);
  cache = nullptr;
}

PageCache::PageCache(ForwardModel &model, Options options)
    : model(model), sharePrefixes(options.sharePrefixes), size(model.facts().pageSize),
      index(model.facts().pages, size, options.hash), freePages(model.facts().pages),
      cachedPages(model.facts().pages), owners(size_t(model.facts().pages)) {
  for (int32_t page = 0; page < model.facts().pages; ++page)
    freePages.pushBack(page);
}

CachedSequence PageCache::open(std::span<const int32_t> tokens, std::string_view salt) {
  CachedSequence sequence;
  sequence.cache = this;
  sequence.salt = salt;
  counts.askedTokens += int64_t(tokens.size());
  PageIndex::Node parent = PageIndex::kRoot;
  while (sharePrefixes && sequence.tokens + size < int64_t(tokens.size())) {
    const auto found = index.find(parent, salt, tokens.subspan(size_t(sequence.tokens), size_t(size)));
    if (found.page < 0)
      break;
    own(found.page);
    sequence.table.push_back(found.page);
    sequence.nodes.push_back(parent = found.node);
    sequence.tokens += size;
  }
  counts.sharedTokens += sequence.tokens;
  return sequence;
}

CachedSequence PageCache::fork(const CachedSequence &sequence) {
  CachedSequence other;
  other.cache = this;
  other.salt = sequence.salt;
  other.tokens = sequence.tokens;
  other.passed = sequence.passed;
  other.nodes = sequence.nodes;
  other.table.assign(sequence.table.begin(), sequence.table.begin() + pagesFor(sequence.tokens));
  for (size_t page = size_t(other.passed); page < other.table.size(); ++page)
    own(other.table[page]);
  return other;
}

// A free page, else the least recently used cached one.
int32_t PageCache::take() {
  if (freePages.size() > 0) {
    const int32_t page = freePages.popFront();
    ++owners[size_t(page)];
    return page;
  }
  const int32_t page = cachedPages.popFront();
  index.withdraw(page);
  ++counts.evictions;
  ++owners[size_t(page)];
  return page;
}

void PageCache::own(int32_t page) {
  if (owners[size_t(page)]++ == 0)
    cachedPages.remove(page);
}

void PageCache::disown(int32_t page) {
  if (--owners[size_t(page)] == 0)
    (index.published(page) ? cachedPages : freePages).pushBack(page);
}

// The last pages go first: nothing can be found behind an evicted page, so those at the end are worth least.
void PageCache::shrink(CachedSequence &sequence, int64_t pages) {
  while (int64_t(sequence.table.size()) > pages) {
    if (sequence.table.back() >= 0)
      disown(sequence.table.back());
    sequence.table.pop_back();
  }
  sequence.passed = std::min(sequence.passed, int64_t(sequence.table.size()));
}

// Pages that the row behind `tokens` tokens, and so every later one, sees nothing of.
int64_t PageCache::pagesBehindWindow(int64_t tokens) const {
  const int64_t window = model.facts().window;
  return window > 0 ? std::max<int64_t>(tokens + 1 - window, 0) / size : 0;
}

void PageCache::releasePassed(CachedSequence &sequence) {
  for (const int64_t end = pagesBehindWindow(sequence.tokens); sequence.passed < end; ++sequence.passed) {
    disown(sequence.table[size_t(sequence.passed)]);
    sequence.table[size_t(sequence.passed)] = -1;
  }
}

Status PageCache::makeWritable(int32_t &page) {
  if (owners[size_t(page)] == 1) {
    if (index.published(page)) // truncated into: its text will be another
      index.withdraw(page);
    return Status::ok();
  }
  const int32_t copy = take();
  if (Status status = model.copyPage(page, copy); !status.isOk()) {
    disown(copy);
    return status;
  }
  ++counts.copies;
  disown(page);
  page = copy;
  return Status::ok();
}

StatusOr<bool> PageCache::reserve(CachedSequence &sequence, int64_t count) {
  const int64_t first = sequence.tokens / size, held = int64_t(sequence.table.size());
  const bool partial = sequence.tokens % size != 0;
  const bool copies = partial && owners[size_t(sequence.table[size_t(first)])] > 1;
  const int64_t more = std::max<int64_t>(pagesFor(sequence.tokens + count) - held, 0);
  if (more + int64_t(copies) > availablePages())
    return false;
  if (partial)
    DSPARK_RETURN_IF_ERROR(makeWritable(sequence.table[size_t(first)]));
  for (int64_t page = 0; page < more; ++page)
    sequence.table.push_back(take());
  return true;
}

void PageCache::commit(CachedSequence &sequence, std::span<const int32_t> tokens) {
  sequence.tokens = int64_t(tokens.size());
  shrink(sequence, pagesFor(sequence.tokens));
  if (sharePrefixes)
    publish(sequence, tokens);
  releasePassed(sequence);
}

// Where another sequence has published the same text meanwhile, its page takes the place of ours: the bits
// are equal (ForwardModel), and one copy is enough.
void PageCache::publish(CachedSequence &sequence, std::span<const int32_t> tokens) {
  for (int64_t full = int64_t(sequence.nodes.size()); full < sequence.tokens / size; ++full) {
    int32_t &page = sequence.table[size_t(full)];
    const auto content = tokens.subspan(size_t(full * size), size_t(size));
    const auto parent = full ? sequence.nodes.back() : PageIndex::kRoot;
    const auto found = index.find(parent, sequence.salt, content);
    if (found.page < 0) {
      sequence.nodes.push_back(index.publish(page, parent, sequence.salt, content));
      continue;
    }
    own(found.page);
    disown(page);
    page = found.page;
    sequence.nodes.push_back(found.node);
  }
}

void PageCache::truncate(CachedSequence &sequence, int64_t length) {
  if (pagesBehindWindow(length) < sequence.passed)
    length = 0;
  sequence.tokens = length;
  shrink(sequence, pagesFor(length));
  sequence.nodes.resize(std::min(sequence.nodes.size(), size_t(length / size)));
}

Status PageCache::check(std::span<const CachedSequence *const> sequences) const {
  std::vector<int32_t> expected(owners.size());
  for (const CachedSequence *sequence : sequences)
    for (int32_t page : sequence->table)
      if (page >= 0)
        ++expected[size_t(page)];
  const auto wrong = [](size_t page, const std::string &what) {
    return Status(Code::Internal, "cache page " + std::to_string(page) + " " + what);
  };
  for (size_t page = 0; page < owners.size(); ++page) {
    if (owners[page] != expected[page])
      return wrong(page, "counts " + std::to_string(owners[page]) + " owners and has " +
                             std::to_string(expected[page]));
    const bool published = index.published(int32_t(page));
    if (freePages.contains(int32_t(page)) != (owners[page] == 0 && !published))
      return wrong(page, "is free and used, or neither");
    if (cachedPages.contains(int32_t(page)) != (owners[page] == 0 && published))
      return wrong(page, "is cached and used, or neither");
  }
  return index.consistent() ? Status::ok() : Status(Code::Internal, "the cache's index misses a page");
}

} // namespace dspark::llm
