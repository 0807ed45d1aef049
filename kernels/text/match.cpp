// regex_full_match: whether RE2 matches the whole string.
#include "kernels/text/text.h"
#include <re2/re2.h>

namespace dspark::text {

void runFullMatch(const KernelCall &call, const KernelWork &, const KernelPart &) {
  auto pattern = compiledPattern(call.attrs.s("pattern", ""));
  auto *x = call.in[0].as<const StringElement>();
  auto *y = call.out[0].as<uint8_t>();
  for (int64_t i = 0, n = call.in[0].elements(); i < n; ++i)
    y[i] = re2::RE2::FullMatch(re2::StringPiece(x[i].data, x[i].size), *pattern);
}

} // namespace dspark::text
