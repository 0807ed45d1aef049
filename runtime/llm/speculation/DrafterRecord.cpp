#include "runtime/llm/speculation/DrafterRecord.h"
#include <nlohmann/json.hpp>

namespace dspark::llm {
namespace {

using Json = nlohmann::json;

constexpr const char *kKinds[] = {"block", "eagle3", "self"}; // as DrafterRecord::Kind
constexpr size_t kMostDrafters = 16, kMostLayers = 1024;
constexpr int64_t kLargest = int64_t(1) << 31;

// Fields of one drafter; the first error stays.
class Fields {
public:
  explicit Fields(const Json &object) : object(object) {}

  int64_t number(const char *key, int64_t least, int64_t most) {
    const Json *value = find(key);
    if (!value || !value->is_number_integer() || value->get<int64_t>() < least ||
        value->get<int64_t>() > most) {
      fail(key, "a number from " + std::to_string(least) + " to " + std::to_string(most));
      return least;
    }
    return value->get<int64_t>();
  }
  bool flag(const char *key) {
    const Json *value = find(key);
    if (!value || !value->is_boolean())
      fail(key, "true or false");
    return value && value->is_boolean() && value->get<bool>();
  }
  std::string text(const char *key) {
    const Json *value = find(key);
    if (!value || !value->is_string() || value->get<std::string>().empty())
      fail(key, "a text");
    return value && value->is_string() ? value->get<std::string>() : "";
  }
  const Json *find(const char *key) const {
    const auto at = object.find(key);
    return at == object.end() ? nullptr : &*at;
  }
  void fail(const char *key, const std::string &expected) {
    if (status.isOk())
      status = corruptFile("section DRAFTERS: '" + std::string(key) + "' of a drafter: expected " + expected);
  }

  Status status;

private:
  const Json &object;
};

Json toJson(const DrafterRecord &record) {
  Json json = {{"kind", kKinds[size_t(record.kind)]},
               {"name", record.name},
               {"function", record.function},
               {"longest_draft", record.longestDraft}};
  if (record.kind == DrafterRecord::Kind::Self)
    json["layers"] = record.layers;
  else
    json["hidden"] = record.hidden;
  if (record.kind == DrafterRecord::Kind::Block)
    json.update({{"block_rows", record.blockRows},
                 {"mask_token", record.maskToken},
                 {"anchor_predicts", record.anchorPredicts},
                 {"has_head", record.hasHead},
                 {"head_state", record.headState},
                 {"draft_logits", record.draftLogits}});
  if (!record.scaling.temperatures().empty())
    json["calibration"] = Json::parse(record.scaling.toJson());
  if (record.acceptance >= 0)
    json["acceptance"] = record.acceptance;
  return json;
}

StatusOr<DrafterRecord> fromJson(const Json &json) {
  Fields fields(json);
  DrafterRecord record;
  const std::string kind = fields.text("kind");
  const auto known = std::find(std::begin(kKinds), std::end(kKinds), kind);
  if (known == std::end(kKinds))
    fields.fail("kind", "block, eagle3 or self, found '" + kind.substr(0, 80) + "'");
  record.kind = DrafterRecord::Kind(known - std::begin(kKinds));
  record.name = fields.text("name");
  record.function = fields.text("function");
  record.longestDraft = int32_t(fields.number("longest_draft", 1, 1024));
  if (record.kind == DrafterRecord::Kind::Self) {
    const Json *layers = fields.find("layers");
    if (!layers || !layers->is_array() || layers->size() > kMostLayers)
      fields.fail("layers", "a list of layers");
    for (const Json &layer : layers && layers->is_array() ? *layers : Json::array())
      record.layers.push_back(layer.is_number_integer() ? layer.get<int64_t>() : -1);
  } else {
    record.hidden = fields.number("hidden", 1, kLargest);
  }
  if (record.kind == DrafterRecord::Kind::Block) {
    record.blockRows = int32_t(fields.number("block_rows", 1, 1024));
    record.maskToken = int32_t(fields.number("mask_token", 0, INT32_MAX));
    record.anchorPredicts = fields.flag("anchor_predicts");
    record.hasHead = fields.flag("has_head");
    record.headState = fields.number("head_state", 0, 1 << 16);
    record.draftLogits = fields.number("draft_logits", 1, INT32_MAX);
  }
  if (const Json *calibration = fields.find("calibration")) {
    DSPARK_ASSIGN_OR_RETURN(record.scaling, TemperatureScaling::fromJson(calibration->dump()));
  }
  if (const Json *acceptance = fields.find("acceptance"))
    record.acceptance = acceptance->is_number() ? acceptance->get<double>() : -1;
  if (!fields.status.isOk())
    return fields.status;
  return record;
}

} // namespace

std::string encodeDrafters(const DraftersSection &section) {
  Json list = Json::array();
  for (const DrafterRecord &record : section.drafters)
    list.push_back(toJson(record));
  return Json{{"speculates", section.speculates}, {"drafters", list}}.dump(2);
}

StatusOr<DraftersSection> decodeDrafters(std::string_view text) {
  DraftersSection section;
  if (text.empty())
    return section;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto list = json.is_object() ? json.find("drafters") : json.end();
  if (!json.is_object() || list == json.end() || !list->is_array() || list->size() > kMostDrafters ||
      !json.contains("speculates") || !json["speculates"].is_boolean())
    return corruptFile(
        "section DRAFTERS: expected an object with 'speculates' and a list 'drafters' of up to " +
        std::to_string(kMostDrafters));
  section.speculates = json["speculates"].get<bool>();
  for (const Json &drafter : *list) {
    if (!drafter.is_object())
      return corruptFile("section DRAFTERS: a drafter is no object");
    DSPARK_ASSIGN_OR_RETURN(section.drafters.emplace_back(), fromJson(drafter));
  }
  return section;
}

} // namespace dspark::llm
