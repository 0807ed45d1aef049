#include "tools/dspark-bench/KernelCase.h"
#include "tools/dspark-bench/Sweep.h"
#include <gtest/gtest.h>

namespace dspark {
namespace {

CostFeatures featuresOf(const std::string &text) {
  StatusOr<std::unique_ptr<CaseRunner>> runner = CaseRunner::create({text}, Isa::Baseline);
  EXPECT_TRUE(runner.isOk()) << runner.status().message();
  return runner.isOk() ? (*runner)->sample(1).features : CostFeatures();
}

TEST(CostFeatures, ActivationsOfConvolutions) {
  std::string rest = " | f32[1,5,7,16] *f32[32,16,1,1]";
  CostFeatures plain = featuresOf("conv packed=panel16 layout=nhwc" + rest);
  EXPECT_EQ(featuresOf("conv packed=panel16 layout=nhwc activation=relu" + rest).heavy, plain.heavy);
  EXPECT_EQ(featuresOf("conv packed=panel16 layout=nhwc activation=sigmoid" + rest).heavy,
            plain.heavy + 5 * 7 * 32);
}

// The expansion's steps are those of the convolution alone, the taps' work that of the depthwise one.
TEST(CostFeatures, ExpandDepthwiseHasBothParts) {
  CostFeatures both = featuresOf("expand_depthwise packed=depthwise layout=nhwc pads=1,1,1,1 group=32 "
                                 "expand_activation=sigmoid | f32[1,12,12,16] *f32[32,16,1,1] *f32[32] "
                                 "*f32[32,1,3,3] *f32[32]");
  CostFeatures expansion = featuresOf("conv packed=panel16 layout=nhwc | f32[1,12,12,16] *f32[32,16,1,1]");
  CostFeatures depthwise = featuresOf("conv packed=depthwise layout=nhwc pads=1,1,1,1 group=32 | "
                                      "f32[1,12,12,32] *f32[32,1,3,3]");
  EXPECT_EQ(both.steps, expansion.steps);
  EXPECT_EQ(both.work, depthwise.work);
  EXPECT_EQ(both.starts, expansion.starts + depthwise.starts);
  EXPECT_EQ(both.heavy, 12 * 12 * 32);
  EXPECT_EQ(both.key, "expand_depthwise_f32/3s1");
}

TEST(CostFeatures, CopiesByTheLengthOfTheirRuns) {
  EXPECT_EQ(featuresOf("transpose perm=1,0 | f32[8,16]").starts, 8 * 16);
  EXPECT_EQ(featuresOf("transpose perm=1,0,2 | f32[8,4,16]").starts, 8 * 4);
  EXPECT_EQ(featuresOf("transpose perm=1,0,2 | f32[1,8,16]").starts, 1) << "axes of size 1 do not count";
  EXPECT_EQ(featuresOf("concat axis=0 | f32[8,16] f32[8,16]").starts, 2);
  EXPECT_EQ(featuresOf("concat axis=1 | f32[8,16] f32[8,16]").starts, 16);
}

TEST(Sweep, EveryCaseIsACallOfAKernel) {
  for (const KernelCase &one : sweepCases())
    EXPECT_TRUE(CaseRunner::create(one, Isa::Baseline).isOk()) << one.text;
}

} // namespace
} // namespace dspark
