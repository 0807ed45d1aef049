#include "runtime/serving/StopStrings.h"
#include <algorithm>

namespace dspark::serving {

StopStrings::StopStrings(std::vector<std::string> given, bool include)
    : strings(std::move(given)), include(include) {
  for (const std::string &string : strings)
    longest = std::max(longest, string.size());
}

bool StopStrings::push(std::string_view text, std::string &out) {
  if (strings.empty()) {
    out += text;
    return false;
  }
  size_t end = held.size();
  held += text;
  while (++end <= held.size())
    if (const size_t length = longestEndingAt(end); length > 0) {
      out.append(held, 0, include ? end : end - length);
      held.clear();
      return true;
    }
  const size_t start = couldStartAt();
  out.append(held, 0, start);
  held.erase(0, start);
  return false;
}

// Bytes of the longest string that is complete at held[end], 0: none.
size_t StopStrings::longestEndingAt(size_t end) const {
  size_t found = 0;
  for (const std::string &string : strings)
    if (string.size() > found && std::string_view(held).substr(0, end).ends_with(string))
      found = string.size();
  return found;
}

// Where the earliest string may have begun that is not complete yet.
size_t StopStrings::couldStartAt() const {
  size_t start = held.size() - std::min(held.size(), longest - 1);
  const auto begins = [&](const std::string &string) {
    return std::string_view(string).starts_with(std::string_view(held).substr(start));
  };
  while (start < held.size() && std::none_of(strings.begin(), strings.end(), begins))
    ++start;
  return start;
}

std::string StopStrings::finish() { return std::move(held); }

} // namespace dspark::serving
