// Dim expressions: canonical forms, text, arithmetic on numbers.
#include "kernels/common/dim.h"
#include <gtest/gtest.h>

namespace dspark {
namespace {

TEST(Dim, EqualExpressionsAreOneNode) {
  DimTable table;
  Dim n = table.symbol("n"), m = table.symbol("m");
  EXPECT_TRUE((n + m).provablyEqual(m + n));
  EXPECT_TRUE((n + 1 - 1).provablyEqual(n));
  EXPECT_TRUE(((n + 1) * Dim(2)).provablyEqual(n * Dim(2) + 2));
  EXPECT_TRUE(floorDiv(n * Dim(6), Dim(3)).provablyEqual(n * Dim(2)));
  EXPECT_TRUE(floorDiv(n * m, m).provablyEqual(n));
  EXPECT_FALSE(n.provablyEqual(m));
  EXPECT_FALSE(Dim().provablyEqual(Dim()));
}

TEST(Dim, BroadcastAbsorbs) {
  DimTable table;
  Dim n = table.symbol("n"), m = table.symbol("m");
  Dim both = *broadcast(n, m);
  EXPECT_TRUE(broadcast(both, m)->provablyEqual(both));
  EXPECT_TRUE(broadcast(n, both)->provablyEqual(both));
  EXPECT_TRUE(broadcast(min(n, Dim(1000000000)), n)->provablyEqual(n));
  EXPECT_TRUE(broadcast(n, Dim(7))->is(7));
  EXPECT_TRUE(broadcast(Dim(1), n)->provablyEqual(n));
  EXPECT_FALSE(broadcast(Dim(3), Dim(4)).has_value());
  // min(n, 1) is 1 wherever n is not 0, so the result is n there, but n == 0 gives 0 on both sides only.
  EXPECT_FALSE(broadcast(min(n, Dim(1)), m)->provablyEqual(m));
}

TEST(Dim, TextReadsBack) {
  DimTable table;
  Dim n = table.symbol("batch"), m = table.symbol("seq");
  for (Dim dim : {n, n * Dim(2) + m + 1, floorDiv(n + m, Dim(2)), ceilDiv(n, Dim(3)), mod(n, m),
                  min(n, Dim(5)), max(m, n), *broadcast(n, m), Dim(42), n - m, Dim(-3)}) {
    std::optional<Dim> parsed = table.parse(dim.str());
    ASSERT_TRUE(parsed) << dim.str();
    EXPECT_TRUE(parsed->provablyEqual(dim)) << dim.str();
  }
  for (const char *bad : {"", "2*", "(n", "n)", "min(n)", "frob(n, 2)", "1 +", "99999999999999999999", "n n"})
    EXPECT_FALSE(table.parse(bad)) << bad;
  EXPECT_FALSE(table.parse(std::string(100000, '(')));
}

TEST(Dim, NumbersRoundAndRefuse) {
  EXPECT_EQ(evaluateDimOp(DimOp::FloorDiv, -7, 2), -4);
  EXPECT_EQ(evaluateDimOp(DimOp::CeilDiv, -7, 2), -3);
  EXPECT_EQ(evaluateDimOp(DimOp::CeilDiv, 7, 2), 4);
  EXPECT_EQ(evaluateDimOp(DimOp::Mod, -7, 3), 2);
  EXPECT_FALSE(evaluateDimOp(DimOp::FloorDiv, 1, 0));
  EXPECT_FALSE(evaluateDimOp(DimOp::Mul, INT64_MAX, 2));
  EXPECT_FALSE(evaluateDimOp(DimOp::Add, INT64_MAX, 1));
  EXPECT_FALSE(evaluateDimOp(DimOp::FloorDiv, INT64_MIN, -1));
}

} // namespace
} // namespace dspark
