// Regular expressions by RE2, whose matching takes time linear in the string.
#include "kernels/text/text.h"
#include <algorithm>
#include <list>
#include <mutex>
#include <re2/re2.h>

namespace dspark::text {
namespace {

constexpr size_t kCachedPatterns = 64;
constexpr int64_t kPatternMemory = 1 << 20; // of one compiled pattern; larger ones count as malformed

} // namespace

std::shared_ptr<const re2::RE2> compiledPattern(std::string_view pattern) {
  static std::mutex mutex;
  static std::list<std::shared_ptr<const re2::RE2>> recent; // the one used last in front
  std::lock_guard lock(mutex);
  auto found =
      std::find_if(recent.begin(), recent.end(), [&](auto &known) { return known->pattern() == pattern; });
  if (found != recent.end()) {
    recent.splice(recent.begin(), recent, found);
    return recent.front();
  }
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_max_mem(kPatternMemory);
  recent.push_front(
      std::make_shared<const re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options));
  if (recent.size() > kCachedPatterns)
    recent.pop_back();
  return recent.front();
}

} // namespace dspark::text
