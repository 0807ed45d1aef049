#include "frontends/checkpoint/ExportSettings.h"
#include "frontends/checkpoint/DecoderConfig.h"
#include "frontends/checkpoint/JsonFields.h"
#include "frontends/checkpoint/TextFile.h"

namespace dspark::checkpoint {
namespace {

struct Source {
  const char *file, *inner, *name;
  const char *length, *olderLength; // GPT-2's
};
constexpr Source kSources[] = {
    {"genai_config.json", "model", "type", "context_length", "context_length"},
    {"config.json", "text_config", "model_type", "max_position_embeddings", "n_positions"},
};

StatusOr<ExportSettings> read(const Source &source, const std::string &text) {
  DSPARK_ASSIGN_OR_RETURN(Json root, parseJsonObject(text));
  Status status;
  JsonFields fields(root, status);
  if (const Json *inner = fields.object(source.inner))
    fields = fields.within(*inner, std::string(source.inner) + ".");
  ExportSettings settings;
  settings.architecture = fields.string(source.name, "");
  settings.contextLength =
      fields.size(fields.has(source.length) ? source.length : source.olderLength, kLongestContext);
  if (!status.isOk())
    return status;
  return settings;
}

} // namespace

StatusOr<ExportSettings> readExportSettings(const std::string &folder) {
  for (const Source &source : kSources) {
    DSPARK_ASSIGN_OR_RETURN(std::optional<std::string> text, readTextFile(folder, source.file));
    if (!text)
      continue;
    StatusOr<ExportSettings> settings = read(source, *text);
    return settings.isOk() ? std::move(settings) : settings.status().in(source.file);
  }
  return Status(Code::NotFound, "neither genai_config.json nor config.json lies beside it");
}

} // namespace dspark::checkpoint
