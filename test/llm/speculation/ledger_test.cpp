#include "runtime/llm/speculation/SpeculationLedger.h"
#include <gtest/gtest.h>
#include <random>

namespace dspark::llm {
namespace {

constexpr double kShare = 0.01;

// What 10,000 steps took, in plain ones, if each that is not parked loses up to `worst`.
double spentOn(SpeculationLedger &ledger, size_t sequences, double worst) {
  std::mt19937 rng(1);
  std::uniform_real_distribution<double> loss(0, worst);
  double spent = 0;
  for (int step = 0; step < 10000; ++step) {
    const double seconds = ledger.parked(sequences) ? 1 : 1 + loss(rng);
    ledger.record(sequences, 1, seconds);
    spent += seconds;
  }
  return spent;
}

TEST(SpeculationLedger, whatIsLostStaysWithinItsShare) {
  for (double worst : {0.1, 0.5, 3.0})
    for (size_t sequences : {1, 4, 16, 1000}) {
      SpeculationLedger ledger(kShare);
      const double start = std::max(4.0 / double(sequences), 1.0);
      EXPECT_LE(spentOn(ledger, sequences, worst), (1 + kShare) * 10000 + start + worst);
    }
}

TEST(SpeculationLedger, whatOneSequenceGainsPaysForNoLossBesideOthers) {
  SpeculationLedger ledger(kShare);
  for (int step = 0; step < 100; ++step)
    ledger.record(1, 2, 1);
  EXPECT_TRUE(ledger.affords(1, 10));
  EXPECT_FALSE(ledger.affords(16, 2));
  ledger.record(16, 1, 2.5);
  EXPECT_TRUE(ledger.parked(16));
  EXPECT_TRUE(ledger.parked(31)) << "of one doubling";
  EXPECT_FALSE(ledger.parked(1));
  EXPECT_FALSE(ledger.parked(32));
  for (int step = 0; step < 151; ++step) // from -0.49, by a share of each
    ledger.record(16, 1, 1);
  EXPECT_FALSE(ledger.parked(16)) << "it has grown back";
}

} // namespace
} // namespace dspark::llm
