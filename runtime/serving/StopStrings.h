// Finds the first stop string in text that comes in pieces, and gives out only what can no longer be part of
// one. Which one is found depends on the text alone, not on how it was cut: the one that is complete first,
// of several that end together the longest.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace dspark::serving {

class StopStrings {
public:
  /// `strings` are not empty. With `include` the text ends after the stop string, not before it.
  StopStrings(std::vector<std::string> strings, bool include);

  /// Appends to `out` what has become certain. True: a stop string is complete, and nothing follows any more.
  bool push(std::string_view text, std::string &out);
  /// What was held back, at the end of the text.
  std::string finish();

private:
  size_t longestEndingAt(size_t end) const;
  size_t couldStartAt() const;

  std::vector<std::string> strings;
  bool include;
  size_t longest = 0;
  std::string held; // the end of the text so far, as far as it is not given out
};

} // namespace dspark::serving
