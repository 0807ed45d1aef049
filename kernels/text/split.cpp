// string_split: parts are views of the string they come from. Without a delimiter, runs of white space
// separate and those at the ends count for nothing, as Python's str.split has it; rows are filled up with
// empty strings.
#include "kernels/text/text.h"
#include <algorithm>

namespace dspark::text {
namespace {

constexpr std::string_view kWhite = " \t\n\v\f\r";

class Splitter {
public:
  explicit Splitter(const KernelCall &call)
      : delimiter(call.attrs.s("delimiter", "")), most(call.attrs.i("maxsplit", -1)) {}

  /// Calls f(part) for each part, at most `most` + 1 of them.
  template <typename F> void forParts(std::string_view text, F f) const {
    bool byWhite = delimiter.empty();
    if (byWhite)
      skipWhite(text);
    if (byWhite && text.empty())
      return;
    for (int64_t cuts = 0;; ++cuts) {
      size_t at = cuts == most ? text.npos : byWhite ? text.find_first_of(kWhite) : text.find(delimiter);
      f(text.substr(0, at));
      if (at == text.npos)
        return;
      text.remove_prefix(at + (byWhite ? 1 : delimiter.size()));
      if (byWhite)
        skipWhite(text);
      if (byWhite && text.empty())
        return;
    }
  }

private:
  static void skipWhite(std::string_view &text) {
    text.remove_prefix(std::min(text.find_first_not_of(kWhite), text.size()));
  }
  std::string_view delimiter;
  int64_t most; // negative: all
};

} // namespace

void runSplitSizes(const KernelCall &call, const KernelWork &, const KernelPart &) {
  Splitter splitter(call);
  auto *x = call.in[0].as<const StringElement>();
  int64_t *sizes = call.out[0].as<int64_t>(), largest = 0;
  for (int64_t i = 0, n = call.in[0].elements(); i < n; ++i) {
    int64_t count = 0;
    splitter.forParts(x[i], [&](std::string_view) { ++count; });
    largest = count > largest ? count : largest;
    if (call.out[0].present())
      sizes[i] = count;
  }
  if (call.out[1].present())
    *call.out[1].as<int64_t>() = largest;
}

// A width that does not come from string_split_sizes cuts rows off.
void runSplit(const KernelCall &call, const KernelWork &, const KernelPart &) {
  Splitter splitter(call);
  auto *x = call.in[0].as<const StringElement>();
  auto *y = call.out[0].as<StringElement>();
  int64_t width = call.out[0].dims[call.out[0].rank - 1];
  for (int64_t i = 0, n = call.in[0].elements(); i < n; ++i) {
    int64_t count = 0;
    splitter.forParts(x[i], [&](std::string_view part) {
      if (count < width)
        y[i * width + count++] = part;
    });
    while (count < width)
      y[i * width + count++] = StringElement();
  }
}

} // namespace dspark::text
