// Rows of the text family, and those of compare and cast that concern strings.
#include "kernels/common/families.h"
#include "kernels/text/text.h"

namespace dspark {
namespace {

bool readsStrings(const KernelCall &call) { return call.in[0].type == DType::String; }
bool makesStrings(const KernelCall &call) { return call.out[0].type == DType::String; }
bool isEqual(const KernelCall &call) { return readsStrings(call) && call.attrs.s("kind", "") == "eq"; }
void prepareNothing(const KernelCall &, KernelWork &) {}

} // namespace

std::span<const Kernel> textKernels() {
  using namespace text;
  static constexpr Kernel kRows[] = {
      {"compare", "compare_strings", Isa::Baseline, isEqual, prepareEqual, runEqual},
      {"cast", "cast_to_string", Isa::Baseline, makesStrings, prepareNothing, runToText},
      {"cast", "cast_from_string", Isa::Baseline, readsStrings, prepareNothing, runFromText},
      {"string_concat", "string_concat_any", Isa::Baseline, nullptr, prepareConcat, runConcat},
      {"string_split_sizes", "string_split_sizes_any", Isa::Baseline, nullptr, prepareNothing, runSplitSizes},
      {"string_split", "string_split_any", Isa::Baseline, nullptr, prepareNothing, runSplit},
      {"string_normalizer", "string_normalizer_any", Isa::Baseline, nullptr, prepareNothing, runNormalize},
      {"regex_full_match", "regex_full_match_re2", Isa::Baseline, nullptr, prepareNothing, runFullMatch},
  };
  return kRows;
}

} // namespace dspark
