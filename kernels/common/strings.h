// Strings as tensor elements: views of characters that lie elsewhere, so that whatever moves elements
// (gather, concat, reshape ...) moves strings too. The characters belong to the caller who lent an input, to
// the plan, or to the run.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace dspark {

struct StringElement {
  const char *data = nullptr; // UTF-8, not terminated; may be null where size is 0
  uint64_t size = 0;

  StringElement() = default;
  StringElement(std::string_view text) : data(text.data()), size(text.size()) {}
  operator std::string_view() const { return {data, size_t(size)}; }
};
static_assert(sizeof(StringElement) == 16, "dtypeBits(DType::String)");

/// What a run offers to kernels on strings: they cannot know their memory in advance, and their operands may
/// have contents that mean nothing ("abc" as a number).
class StringRun {
public:
  /// Memory for `bytes` characters until the next run begins; null, and the run will fail, where there is
  /// none left.
  virtual char *take(uint64_t bytes) = 0;
  /// Makes the run fail with this sentence. The kernel goes on with any value.
  virtual void refuse(std::string reason) = 0;

  /// The run that this thread is in. Kernels that need it have one tile, which the thread that runs the plan
  /// does itself.
  static StringRun &current() { return *running; }
  /// Makes a run the current one for as long as this lives.
  class Scope {
  public:
    explicit Scope(StringRun &run) : before(running) { running = &run; }
    ~Scope() { running = before; }
    Scope(const Scope &) = delete;

  private:
    StringRun *before;
  };

protected:
  ~StringRun() = default;

private:
  static inline thread_local StringRun *running = nullptr;
};

/// a + b in the run's memory.
inline StringElement join(StringRun &run, std::string_view a, std::string_view b) {
  char *text = a.size() + b.size() > 0 ? run.take(a.size() + b.size()) : nullptr;
  if (!text)
    return {};
  if (!a.empty())
    __builtin_memcpy(text, a.data(), a.size());
  if (!b.empty())
    __builtin_memcpy(text + a.size(), b.data(), b.size());
  return std::string_view(text, a.size() + b.size());
}

} // namespace dspark
