// The safetensors reader, config.json and tokenizer.model: any bytes end in tensors inside the file, in
// settings, or in a sentence. The first byte says which reader gets the rest.
#include "frontends/checkpoint/HuggingFaceDecoder.h"
#include "frontends/checkpoint/SentencePieceModel.h"
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace dspark::checkpoint;
  if (size == 0)
    return 0;
  std::string_view text(reinterpret_cast<const char *>(data) + 1, size - 1);
  if (data[0] % 4 == 0) {
    auto config = readHuggingFaceConfig(text);
    if (config.isOk() && config->decoder.ropes.empty())
      std::abort();
  } else if (data[0] % 4 == 1) {
    auto spec = readSentencePieceModel(text);
    if (spec.isOk() && spec->tokens.empty())
      std::abort();
  } else {
    auto bytes = std::as_bytes(std::span(text));
    auto file = SafeTensorsFile::read(bytes);
    if (file.isOk())
      for (const auto &[name, tensor] : (*file)->tensors())
        if (!tensor.bytes.empty() &&
            (tensor.bytes.data() < bytes.data() ||
             tensor.bytes.size() > bytes.size() - size_t(tensor.bytes.data() - bytes.data())))
          std::abort();
  }
  return 0;
}
