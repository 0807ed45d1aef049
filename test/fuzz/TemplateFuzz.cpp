// The template engine: any source ends in text or in a sentence, within its budget.
#include "runtime/llm/template/Template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace dspark::llm;
  static const tmpl::Value variables = *valueFromJson(
      R"({"messages": [{"role": "user", "content": "a b"}, {"role": "tool", "content": [1, {"x": null}]}], "n": 3, "s": "xyz"})");
  const auto compiled = Template::compile({reinterpret_cast<const char *>(data), size});
  if (compiled.isOk())
    (void)compiled->render(*variables.entries(), 0, {.steps = 20'000, .bytes = 1 << 20, .depth = 40}).isOk();
  return 0;
}
