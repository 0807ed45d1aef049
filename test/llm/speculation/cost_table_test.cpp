// The table of step times: what it refuses, how noise is repaired, and how it follows the machine.
#include "ToyDecoding.h"
#include "runtime/llm/speculation/CostTable.h"
#include <gmock/gmock.h>

namespace dspark::llm {
namespace {
using testing::HasSubstr;

CostTable tableOf(std::vector<CostPoint> points) {
  auto table = CostTable::create(std::move(points));
  EXPECT_TRUE(table.isOk()) << table.status().message();
  return *table;
}

TEST(CostTable, refusesWhatWasNotMeasured) {
  const auto refusal = [](std::vector<CostPoint> points) {
    return CostTable::create(std::move(points)).status().message();
  };
  EXPECT_THAT(refusal({}), HasSubstr("without points"));
  EXPECT_THAT(refusal({{1, 0, 0}, {1, 4, 1}}), HasSubstr("it was not measured"));
  EXPECT_THAT(refusal({{1, 0, NAN}}), HasSubstr("it was not measured"));
  EXPECT_THAT(refusal({{0, 0, 1}}), HasSubstr("expected a sequence at least"));
  EXPECT_THAT(refusal({{1, 0, 1}, {1, 0, 2}}), HasSubstr("is given twice"));
  EXPECT_THAT(refusal({{1, 0, 1}, {1, 8, 1}}), HasSubstr("flat at 1 sequences"));
  EXPECT_THAT(refusal({{1, 0, 1.2}, {1, 8, 1}}), HasSubstr("flat at 1 sequences")) << "falling is noise";
  EXPECT_THAT(refusal({{1, 0, 1}, {1, 8, 2}, {4, 0, 1}}), HasSubstr("flat at 4 sequences"));
  EXPECT_TRUE(CostTable::create({{1, 1, 1}, {1, 8, 1}}, CostTable::Kind::Drafter).isOk());
}

TEST(CostTable, interpolatesAndNeverFalls) {
  const CostTable table = tableOf({{1, 0, 1}, {1, 2, 3}, {1, 4, 2}, {1, 8, 4}, {3, 0, 2}, {3, 8, 6}});
  EXPECT_DOUBLE_EQ(table.seconds(1, 0), 1);
  EXPECT_DOUBLE_EQ(table.seconds(1, 1), 1.75) << "2 and 4 drafts both 2.5 after repair";
  EXPECT_DOUBLE_EQ(table.seconds(1, 3), 2.5);
  EXPECT_DOUBLE_EQ(table.seconds(1, 6), 3.25);
  EXPECT_DOUBLE_EQ(table.seconds(2, 8), 5);
  EXPECT_DOUBLE_EQ(table.seconds(1, 16), 7) << "mean and last slope are 0.375: beyond 4 by 8 of them";
  EXPECT_DOUBLE_EQ(table.seconds(5, 8), 8);
  for (int32_t s = 1; s < 6; ++s)
    for (int32_t d = 1; d < 40; ++d)
      EXPECT_GE(table.seconds(s, d), table.seconds(s, d - 1));
}

TEST(CostTable, pointsToMeasureCoverTheRange) {
  const auto points = CostTable::pointsToMeasure(6, 7);
  EXPECT_EQ(points.front().sequences, 1);
  EXPECT_EQ(points.back().sequences, 6);
  EXPECT_EQ(points.back().drafts, 42);
  EXPECT_LT(points.size(), 60u);
}

TEST(CostTable, followsAMachineThatSlowsDownAndAPointThatWasWrong) {
  CostTable table = tableOf({{1, 0, 1}, {1, 4, 1.2}, {1, 8, 3}});
  for (int i = 0; i < 60; ++i)
    table.observe(1, 0, 2);
  EXPECT_NEAR(table.seconds(1, 0), 2, 0.02);
  EXPECT_GT(table.seconds(1, 8), 4.5) << "all of the table is slower, not the one point";
  for (int i = 0; i < 300; ++i) { // plain steps take 1 now, those with 4 drafts 2: the table said 1.2
    table.observe(1, 0, 1);
    table.observe(1, 4, 2);
  }
  EXPECT_NEAR(table.seconds(1, 4) / table.seconds(1, 0), 2, 0.1);
  const double before = table.seconds(1, 0);
  table.observe(1, 0, 1000); // a hiccup
  EXPECT_LT(table.seconds(1, 0), 1.2 * before);
  table.observe(1, 0, NAN);
  EXPECT_LT(table.seconds(1, 0), 1.2 * before);
}

TEST(CostTable, stairsAreLearnedFromTheFirstStepsOfAWidth) {
  CostTable table = tableOf({{1, 0, 1}, {1, 4, 2}, {1, 8, 3}});
  table.refine();
  EXPECT_DOUBLE_EQ(table.seconds(1, 1), 1.25) << "nothing is known of it";
  EXPECT_DOUBLE_EQ(table.seconds(1, 8), 3);
  for (int i = 0; i < 8; ++i)
    table.observe(1, 1, 2);
  EXPECT_NEAR(table.seconds(1, 1), 2, 0.1);
  EXPECT_LT(table.seconds(1, 0), 1.5) << "speed as such follows, a point that is known does not";
  const auto back = CostTable::fromJson(table.toJson());
  ASSERT_TRUE(back.isOk()) << back.status().message();
  EXPECT_EQ(back->toJson(), CostTable::fromJson(back->toJson())->toJson());
  EXPECT_THAT(back->toJson(), HasSubstr("[1,3,")) << "and is still a guess";
}

TEST(CostTable, numbersOfSequencesBetweenTheMeasuredOnesAreLearned) {
  CostTable table = tableOf({{1, 0, 1}, {1, 4, 2}, {8, 0, 8}, {8, 4, 9}});
  table.refine();
  EXPECT_DOUBLE_EQ(table.seconds(2, 0), 2) << "nothing is known of it";
  EXPECT_DOUBLE_EQ(table.seconds(8, 4), 9);
  for (int i = 0; i < 12; ++i)
    table.observe(2, 0, 1.5);
  EXPECT_NEAR(table.seconds(2, 0), 1.5, 0.1);
  EXPECT_GT(table.seconds(4, 0), 3);
}

TEST(CostTable, textGoesBothWaysAndIsChecked) {
  CostTable table = tableOf({{1, 0, 0.5}, {1, 8, 1.5}, {2, 0, 1}, {2, 8, 2}});
  table.observe(1, 0, 0.6);
  const auto back = CostTable::fromJson(table.toJson());
  ASSERT_TRUE(back.isOk()) << back.status().message();
  EXPECT_DOUBLE_EQ(back->seconds(2, 3), table.seconds(2, 3));
  const auto refusal = [](const char *text) { return CostTable::fromJson(text).status().message(); };
  EXPECT_THAT(refusal("{"), HasSubstr("a cost table is an object"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("a cost table is an object"));
  EXPECT_THAT(refusal(R"({"sequences_drafts_seconds": 7})"), HasSubstr("up to 4096 points"));
  EXPECT_THAT(refusal(R"({"sequences_drafts_seconds": [[1, 2]]})"), HasSubstr("[1,2]"));
  EXPECT_THAT(refusal(R"({"sequences_drafts_seconds": [[1e99, 2, 3]]})"), HasSubstr("is [sequences"));
  EXPECT_THAT(refusal(R"({"sequences_drafts_seconds": [[-9223372036854775808, 2, 3]]})"),
              HasSubstr("expected a sequence at least"));
}

} // namespace
} // namespace dspark::llm
