// A compiled pattern for pre-tokenisers, by PCRE2 with its just-in-time compiler. Patterns come from
// checkpoints and may be hostile: compilation and matching are bounded, and an exhausted bound is an error,
// not a hang.
#pragma once
#include "runtime/base/Status.h"
#include <functional>
#include <memory>
#include <string_view>

namespace dspark::llm {

class Regex {
public:
  static StatusOr<Regex> compile(std::string_view pattern);

  /// Calls found(begin, end) for every non-empty match from left to right. `text` must be valid UTF-8.
  /// Thread-safe.
  Status forEachMatch(std::string_view text,
                      const std::function<void(size_t begin, size_t end)> &found) const;

private:
  struct Code;
  std::shared_ptr<const Code> code;
};

} // namespace dspark::llm
