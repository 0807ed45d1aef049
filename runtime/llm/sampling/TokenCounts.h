// What penalties know about a sequence: which tokens its prompt has, and how often its output has each. It
// follows drafts token by token and back again.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace dspark::llm {

class TokenCounts {
public:
  struct Entry {
    int32_t token = 0;
    bool inPrompt = false;
    uint32_t outputs = 0; // 0: only in the prompt, or a draft that was taken back
  };

  void addPrompt(std::span<const int32_t> tokens);
  void push(int32_t token) { ++entry(token).outputs; }
  /// Takes back the latest push of `token`.
  void pop(int32_t token) { --entry(token).outputs; }

  /// In the order in which the tokens came first.
  std::span<const Entry> entries() const { return list; }

private:
  Entry &entry(int32_t token);

  std::vector<Entry> list;
  std::unordered_map<int32_t, size_t> places; // in `list`
};

} // namespace dspark::llm
