#include "kernels/common/isa.h"
#include <gtest/gtest.h>

namespace dspark {
namespace {

TEST(Isa, NamesAreThoseOfTheLevels) {
  for (int i = 0; i < kIsaCount; ++i) {
    Isa isa;
    ASSERT_TRUE(isaFromName(isaName(Isa(i)), isa));
    EXPECT_EQ(int(isa), i);
  }
  Isa isa;
  for (const char *name : {"", "AMX", "avx", "amx "})
    EXPECT_FALSE(isaFromName(name, isa)) << name;
}

TEST(Isa, AmxHasTheVectorsOfTheLevelBelow) {
  EXPECT_EQ(vectorIsa(Isa::Amx), Isa::Avx512);
  for (Isa isa : {Isa::Baseline, Isa::Avx2, Isa::Avx512})
    EXPECT_EQ(vectorIsa(isa), isa);
  EXPECT_LE(activeIsa(), machineIsa());
}

} // namespace
} // namespace dspark
