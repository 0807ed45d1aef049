// The section DRAFTERS: there and back, and whatever else may stand in it.
#include "runtime/llm/speculation/DrafterRecord.h"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace dspark::llm {
namespace {
using testing::HasSubstr;

DraftersSection section() {
  DrafterRecord block;
  block.name = "dspark";
  block.function = "draft";
  block.longestDraft = block.blockRows = 7;
  block.maskToken = 151669;
  block.hasHead = true;
  block.headState = 256;
  block.draftLogits = 151936;
  block.hidden = 2560;
  block.scaling = *TemperatureScaling::fromJson("{\"temperatures\": [1.5, 2]}");
  block.acceptance = 0.75;
  DrafterRecord own;
  own.kind = DrafterRecord::Kind::Self;
  own.name = own.function = "self";
  own.longestDraft = 6;
  own.layers = {0, 1, 29};
  return {.speculates = false, .drafters = {block, own}};
}

TEST(DrafterRecord, SurvivesTheSection) {
  const auto read = decodeDrafters(encodeDrafters(section()));
  ASSERT_TRUE(read.isOk()) << read.status().message();
  EXPECT_EQ(encodeDrafters(*read), encodeDrafters(section()));
  EXPECT_FALSE(read->speculates);
  EXPECT_EQ(read->drafters[0].draftLogits, 151936);
  EXPECT_EQ(read->drafters[0].scaling.temperatures().size(), 2u);
  EXPECT_EQ(read->drafters[1].layers.back(), 29);
  const auto none = decodeDrafters("");
  EXPECT_TRUE(none.isOk() && none->speculates && none->drafters.empty());
}

TEST(DrafterRecord, SaysWhichFieldIsWrong) {
  const auto refusal = [](const char *key, nlohmann::json value) {
    nlohmann::json json = nlohmann::json::parse(encodeDrafters(section()));
    if (value.is_discarded())
      json["drafters"][0].erase(key);
    else
      json["drafters"][0][key] = std::move(value);
    return decodeDrafters(json.dump()).status().message();
  };
  const nlohmann::json gone(nlohmann::json::value_t::discarded);
  EXPECT_THAT(refusal("kind", "tree"), HasSubstr("'kind' of a drafter: expected block, eagle3 or self"));
  EXPECT_THAT(refusal("name", gone), HasSubstr("'name' of a drafter: expected a text"));
  EXPECT_THAT(refusal("block_rows", 0),
              HasSubstr("'block_rows' of a drafter: expected a number from 1 to 1024"));
  EXPECT_THAT(refusal("mask_token", 1.5), HasSubstr("'mask_token'"));
  EXPECT_THAT(refusal("has_head", 1), HasSubstr("'has_head' of a drafter: expected true or false"));
  EXPECT_THAT(refusal("head_state", -1), HasSubstr("'head_state'"));
  EXPECT_THAT(refusal("calibration", 7), HasSubstr("temperatures"));
  for (const char *text :
       {"{", "[]", "{}", "{\"speculates\": true, \"drafters\": {}}", "{\"speculates\": 1, \"drafters\": []}",
        "{\"speculates\": true, \"drafters\": [3]}"})
    EXPECT_THAT(decodeDrafters(text).status().message(), HasSubstr("section DRAFTERS")) << text;
}

} // namespace
} // namespace dspark::llm
