// What lies beside an exported language model: its context length and name, in the genai_config.json of
// onnxruntime-genai or Hugging Face's config.json.
#pragma once
#include "runtime/base/Status.h"
#include <string>

namespace dspark::checkpoint {

struct ExportSettings {
  std::string architecture; // "llama" ...; "" if the file does not say
  int64_t contextLength = 0;
};

/// Errors: NotFound if the folder has neither file; CorruptFile with the key, the value found and the limit.
StatusOr<ExportSettings> readExportSettings(const std::string &folder);

} // namespace dspark::checkpoint
