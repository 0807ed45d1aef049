// Keeps speculation from ever costing more than a small share of the time: a balance of what it gained and
// lost against plain decoding.
#pragma once
#include <algorithm>

namespace dspark::llm {

/// All in steps of plain decoding, the unit that follows the load. The balance grows by a share of all work,
/// by what speculation gains, and falls by what it loses; below 0 speculation is parked until it has grown
/// back to kResume. So n tokens take at most the time of (1 + share) n plain steps, and kStart + one step's
/// loss more.
class SpeculationLedger {
public:
  explicit SpeculationLedger(double share) : share(share) {}

  /// A step gave what `worth` plain steps give, in the time of `spent`. Plain steps are their own measure:
  /// worth = spent.
  void record(double worth, double spent) {
    balance = std::min(balance + share * worth + worth - spent, kMost);
    isParked = isParked ? balance < kResume : balance < 0;
  }

  bool parked() const { return isParked; }
  bool affords(double loss) const { return !isParked && balance >= loss; }

private:
  static constexpr double kStart = 4, kResume = 1;
  static constexpr double kMost = 16; // gains of long ago pay for no more than this

  double share;
  double balance = kStart;
  bool isParked = false;
};

} // namespace dspark::llm
