#include "tools/dspark-compile/PrecisionSolve.h"
#include <cmath>
#include <gtest/gtest.h>

namespace dspark {
namespace {

// A chain of regions of 10 us in f32; bytes take `seconds`, are off by `error` and cost `quantizing` at the
// start.
std::vector<PrecisionRegion> chain(size_t count, double seconds, double error, double quantizing) {
  std::vector<PrecisionRegion> regions(count);
  for (size_t r = 0; r < count; ++r) {
    regions[r].seconds = 10e-6;
    regions[r].signal = 1;
    regions[r].quantizeSeconds = quantizing;
    regions[r].input = int(r);
    PrecisionVariant bytes{kStaticInt8, ""};
    bytes.seconds = seconds;
    bytes.noise = error * error;
    regions[r].variants.push_back(bytes);
  }
  return regions;
}

// Of a chain: what each region reads is made by the one before it.
std::vector<PrecisionValue> between(const std::vector<PrecisionRegion> &regions) {
  std::vector<PrecisionValue> values(regions.size());
  for (size_t r = 0; r < regions.size(); ++r)
    values[r] = {int(r) - 1, {}, false, regions[r].quantizeSeconds};
  return values;
}

std::vector<int> solved(const std::vector<PrecisionRegion> &chain, const PrecisionRule &rule, double budget) {
  return solvePrecision(chain, between(chain), rule, budget);
}

PrecisionRule rule(size_t count) { return {"", std::vector<double>(count, 1)}; }

TEST(PrecisionSolve, FasterWithinTheBudget) {
  std::vector<PrecisionRegion> regions = chain(3, 5e-6, 0.01, 1e-6);
  EXPECT_EQ(solved(regions, rule(3), 1), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(solved(regions, rule(3), 0), (std::vector<int>{-1, -1, -1}));
  std::vector<int> two = solved(regions, rule(3), 2.5e-4); // each does 1e-4
  EXPECT_EQ(std::count(two.begin(), two.end(), 0), 2);
  EXPECT_NE(two[1], -1) << "neighbours, since a chain is quantised once";
}

TEST(PrecisionSolve, SlowerIsNeverTaken) {
  EXPECT_EQ(solved(chain(2, 9.9e-6, 0, 0), rule(2), 1), (std::vector<int>{-1, -1})) << "by less than 3 %";
  EXPECT_EQ(solved(chain(1, 6e-6, 0, 5e-6), rule(1), 1), (std::vector<int>{-1})) << "with its quantising";
}

TEST(PrecisionSolve, AnErrorThatIsNotFiniteIsNone) {
  EXPECT_EQ(solved(chain(1, 5e-6, INFINITY, 0), rule(1), 1e300), (std::vector<int>{-1}));
}

TEST(PrecisionSolve, OneFormEverywhere) {
  std::vector<PrecisionRegion> regions = chain(3, 50e-6, INFINITY, 0);
  regions[1].pinnedBecause = "named";
  EXPECT_EQ(solved(regions, {kStaticInt8, {1, 1, 1}}, 1e300), (std::vector<int>{0, -1, 0}));
  EXPECT_EQ(solved(regions, {"int4", {1, 1, 1}}, 1e300), (std::vector<int>{-1, -1, -1})) << "has none";
}

TEST(PrecisionSolve, SecondsCountQuantisingBetweenForms) {
  std::vector<PrecisionRegion> regions = chain(3, 5e-6, 0, 1e-6);
  EXPECT_NEAR(secondsOf(regions, between(regions), {-1, -1, -1}), 30e-6, 1e-12);
  EXPECT_NEAR(secondsOf(regions, between(regions), {0, 0, 0}), 16e-6, 1e-12);
  EXPECT_NEAR(secondsOf(regions, between(regions), {0, -1, 0}), 22e-6, 1e-12);
}

// A value that floats are read of as well is quantised although bytes made it.
TEST(PrecisionSolve, ReadersOfFloatsCost) {
  std::vector<PrecisionRegion> regions = chain(2, 5e-6, 0, 1e-6);
  std::vector<PrecisionValue> values = between(regions);
  EXPECT_NEAR(secondsOf(regions, values, {0, 0}), 11e-6, 1e-12);
  values[1].hasFloatReaders = true;
  EXPECT_NEAR(secondsOf(regions, values, {0, 0}), 12e-6, 1e-12);
  EXPECT_NEAR(secondsOf(regions, values, {0, -1}), 16e-6, 1e-12);
}

// r0 and r1 read the model's input, their sum goes to r2: on bytes it is a step, as floats it is none.
TEST(PrecisionSolve, SumsOfBytes) {
  std::vector<PrecisionRegion> regions = chain(3, 5e-6, 0, 2e-6);
  regions[1].input = 0;
  regions[2].input = 3;
  std::vector<PrecisionValue> values = {
      {-1, {}, false, 2e-6}, {0, {}, false, 1e-6}, {1, {}, false, 1e-6}, {-1, {1, 2}, false, 1e-6}};
  EXPECT_NEAR(secondsOf(regions, values, {-1, -1, -1}), 30e-6, 1e-12);
  EXPECT_NEAR(secondsOf(regions, values, {0, 0, -1}), 22e-6, 1e-12) << "the input is quantised once";
  EXPECT_NEAR(secondsOf(regions, values, {0, 0, 0}), 18e-6, 1e-12);
  EXPECT_NEAR(secondsOf(regions, values, {-1, 0, 0}), 22e-6, 1e-12) << "the sum of floats is quantised";
}

// One value read by two regions, of which one has the time of quantising it; a value before it.
TEST(PrecisionRegions, TimesOfValues) {
  std::vector<PrecisionRegion> regions = chain(2, 5e-6, 0, 0);
  CompileReport report;
  report.contractions.resize(2);
  for (int r : {0, 1}) {
    regions[size_t(r)].contraction = r;
    regions[size_t(r)].input = 0;
  }
  regions[1].quantizeSeconds = 3e-6;
  report.values = {{-1, {1}, false}, {0, {}, true}};
  std::vector<PrecisionValue> values = precisionValues(report, regions);
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0].quantizeSeconds, 3e-6);
  EXPECT_EQ(values[1].quantizeSeconds, 3e-6);
  EXPECT_EQ(values[1].region, 0);
  EXPECT_TRUE(values[1].hasFloatReaders);
  EXPECT_EQ(regions[0].quantizeSeconds, 3e-6);
}

TEST(PrecisionRegions, FormsForFewRows) {
  PrecisionRegion region;
  region.op = "matmul";
  PrecisionVariant packed{"int8_g32_f32", "int8"};
  for (auto [rows, plain, few] : {std::tuple{1, 4.0, 1.0}, {8, 5.0, 4.0}, {64, 10.0, 20.0}}) {
    region.calls.push_back({rows, plain, plain, 0});
    packed.calls.push_back({rows, few, few, 1});
  }
  region.variants = {packed};
  PrecisionRegion other = region;
  other.op = "conv";
  other.finish(1);
  EXPECT_EQ(other.variants.size(), 1u) << "only products become two by their rows";
  region.finish(1);
  ASSERT_EQ(region.variants.size(), 2u);
  EXPECT_EQ(region.variants[0].seconds, 25);
  EXPECT_EQ(region.variants[1].mostRows, 8);
  EXPECT_EQ(region.variants[1].seconds, 15);
  EXPECT_EQ(region.variants[1].noise, 2) << "f32 is exact";
  EXPECT_EQ(region.variants[1].name(), "int8_g32_f32/int8 up to 8 rows");
  region.variants.resize(1);
  region.variants[0].calls[2].seconds = 5;
  region.addRowForms();
  EXPECT_EQ(region.variants.size(), 1u) << "faster with all";
}

} // namespace
} // namespace dspark
