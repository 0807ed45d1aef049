// What the files of the text family share.
#pragma once
#include "kernels/common/kernel.h"
#include "kernels/common/strings.h"
#include <memory>

namespace re2 {
class RE2;
}

namespace dspark::text {

/// The compiled form of a pattern in RE2's syntax. The last kCachedPatterns used are kept; any thread may
/// call.
std::shared_ptr<const re2::RE2> compiledPattern(std::string_view pattern);

void prepareEqual(const KernelCall &, KernelWork &);
void runEqual(const KernelCall &, const KernelWork &, const KernelPart &);
void prepareConcat(const KernelCall &, KernelWork &);
void runConcat(const KernelCall &, const KernelWork &, const KernelPart &);
// All others: one tile.
void runSplitSizes(const KernelCall &, const KernelWork &, const KernelPart &);
void runSplit(const KernelCall &, const KernelWork &, const KernelPart &);
void runNormalize(const KernelCall &, const KernelWork &, const KernelPart &);
void runFullMatch(const KernelCall &, const KernelWork &, const KernelPart &);
void runToText(const KernelCall &, const KernelWork &, const KernelPart &);
void runFromText(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark::text
