// A queue of page numbers from which any page can be taken in constant time: links in two arrays, no
// allocation.
#pragma once
#include <cstdint>
#include <vector>

namespace dspark::llm {

class PageList {
public:
  explicit PageList(int64_t pages) : links(size_t(pages) + 1, {kNone, kNone}) {
    links.back() = {int32_t(pages), int32_t(pages)}; // the ring's head
  }

  int64_t size() const { return count; }
  bool contains(int32_t page) const { return links[size_t(page)].next != kNone; }
  int32_t front() const { return links.back().next; }

  void pushBack(int32_t page) {
    const int32_t head = int32_t(links.size()) - 1, last = links.back().previous;
    links[size_t(page)] = {last, head};
    links[size_t(last)].next = links.back().previous = page;
    ++count;
  }
  void remove(int32_t page) {
    auto &[previous, next] = links[size_t(page)];
    links[size_t(previous)].next = next;
    links[size_t(next)].previous = previous;
    previous = next = kNone;
    --count;
  }
  int32_t popFront() {
    const int32_t page = front();
    remove(page);
    return page;
  }

private:
  static constexpr int32_t kNone = -1;
  struct Link {
    int32_t previous, next;
  };
  std::vector<Link> links;
  int64_t count = 0;
};

} // namespace dspark::llm
