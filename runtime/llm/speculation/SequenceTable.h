// What a drafter remembers of each sequence, from begin to forget, and the errors of sequences that it does
// not know.
#pragma once
#include "runtime/llm/speculation/Drafter.h"
#include <string>
#include <unordered_map>

namespace dspark::llm {

template <typename Memory> class SequenceTable {
public:
  /// Errors name `owner`, which must outlive the table.
  explicit SequenceTable(const Drafter &owner) : owner(owner) {}

  Status begin(SequenceId sequence) {
    return memories.try_emplace(sequence).second ? Status::ok() : refuse(sequence, "was begun before");
  }
  StatusOr<Memory *> find(SequenceId sequence) {
    const auto at = memories.find(sequence);
    if (at == memories.end())
      return refuse(sequence, "was not begun");
    return &at->second;
  }
  /// Null if the sequence is unknown.
  const Memory *get(SequenceId sequence) const {
    const auto at = memories.find(sequence);
    return at == memories.end() ? nullptr : &at->second;
  }
  /// Whether a sequence of `known` tokens can be cut to `length`.
  Status checkCut(SequenceId sequence, int64_t known, int64_t length) const {
    return length >= 0 && length <= known
               ? Status::ok()
               : refuse(sequence, "has " + std::to_string(known) + " tokens, not " + std::to_string(length));
  }
  void forget(SequenceId sequence) { memories.erase(sequence); }

  auto begin() { return memories.begin(); }
  auto end() { return memories.end(); }

private:
  Status refuse(SequenceId sequence, const std::string &why) const {
    return invalidArgument("drafter " + std::string(owner.name()) + ": sequence " + std::to_string(sequence) +
                           " " + why);
  }

  const Drafter &owner;
  std::unordered_map<SequenceId, Memory> memories;
};

} // namespace dspark::llm
