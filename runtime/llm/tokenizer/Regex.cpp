#include "runtime/llm/tokenizer/Regex.h"
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string>

namespace dspark::llm {
namespace {

// Published pre-tokenisers have 20 to 700 bytes and take at most some hundred steps per match; both bounds
// are far above.
constexpr size_t kLongestPattern = 16 * 1024;
constexpr uint32_t kMostSteps = 10'000'000;
constexpr uint32_t kHeapKiB = 64 * 1024;

std::string describe(int error) {
  char text[160];
  pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR *>(text), sizeof text);
  return text;
}

} // namespace

struct Regex::Code {
  pcre2_code *code = nullptr;
  pcre2_match_context *limits = nullptr;

  Code() = default;
  Code(const Code &) = delete;
  ~Code() {
    pcre2_match_context_free(limits);
    pcre2_code_free(code);
  }
};

StatusOr<Regex> Regex::compile(std::string_view pattern) {
  if (pattern.size() > kLongestPattern)
    return invalidArgument("a pre-tokeniser's pattern has " + std::to_string(pattern.size()) +
                           " bytes, at most " + std::to_string(kLongestPattern) + " are allowed");
  int error = 0;
  size_t at = 0;
  auto code = std::make_shared<Code>();
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr);
  if (!code->code)
    return invalidArgument("the pre-tokeniser's pattern \"" + std::string(pattern) + "\" is wrong at byte " +
                           std::to_string(at) + ": " + describe(error));
  pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE); // without it matching is slower, not wrong
  code->limits = pcre2_match_context_create(nullptr);
  pcre2_set_match_limit(code->limits, kMostSteps);
  pcre2_set_heap_limit(code->limits, kHeapKiB);
  Regex regex;
  regex.code = std::move(code);
  return regex;
}

Status Regex::forEachMatch(std::string_view text, const std::function<void(size_t, size_t)> &found) const {
  struct Free {
    void operator()(pcre2_match_data *data) const { pcre2_match_data_free(data); }
  };
  std::unique_ptr<pcre2_match_data, Free> data(pcre2_match_data_create(1, nullptr));
  const size_t *span = pcre2_get_ovector_pointer(data.get());
  for (size_t at = 0; at < text.size();) {
    const int rc = pcre2_match(code->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                               PCRE2_NOTEMPTY | PCRE2_NO_UTF_CHECK, data.get(), code->limits);
    if (rc == PCRE2_ERROR_NOMATCH)
      break;
    if (rc < 0)
      return invalidArgument("the pre-tokeniser's pattern gave up at byte " + std::to_string(at) + ": " +
                             describe(rc));
    if (span[1] <= at || span[1] <= span[0]) // \K and look-behind can place a match before the start
      return invalidArgument("the pre-tokeniser's pattern matches backwards");
    found(span[0] < at ? at : span[0], span[1]);
    at = span[1];
  }
  return Status::ok();
}

} // namespace dspark::llm
