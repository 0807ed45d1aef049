// The GGUF reader and the tokenizer in the file: any bytes end in a tokenizer that encodes, or in a sentence.
#include "frontends/checkpoint/GgufTokenizer.h"
#include "runtime/llm/tokenizer/Detokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace dspark;
  const auto file = checkpoint::GgufFile::read(std::as_bytes(std::span(data, size)));
  if (!file.isOk())
    return 0;
  auto spec = checkpoint::readGgufTokenizer(**file);
  if (!spec.isOk())
    return 0;
  const auto tokenizer = llm::Tokenizer::build(std::move(*spec));
  if (!tokenizer.isOk())
    return 0;
  const auto ids = (*tokenizer)->encode("Caf\xC3\xA9 <|im_end|> 12 \xE2\x96\x81x\n\n");
  if (ids.isOk())
    llm::decode(**tokenizer, *ids, true);
  return 0;
}
