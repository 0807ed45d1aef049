// How long one variant takes, from a prediction and from measurements. Disturbances only ever add time, so
// the least of a window of measurements counts.
#pragma once
#include <array>
#include <cstddef>

namespace dspark {

class Estimate {
public:
  static constexpr size_t kWindow = 25; // measurements that are remembered
  static constexpr size_t kEnough = 3;  // of them, before they replace the prediction

  explicit Estimate(double predicted = 0) : prediction(predicted) {}

  /// `isSuspect`: while its resource is known to be slower than usual.
  void add(double seconds, bool isSuspect = false);
  void suspect() { hasSuspects = true; }
  /// Whether the last measurements say that the variant has become slower for good: five in a row a quarter
  /// above what is usual, or two in a row twice as long. Noise of +-30 % looks like that once in 200,000
  /// runs.
  bool hasDrifted() const;
  /// Forgets all but the last measurements, which show the new state. Returns by how much it is slower.
  double acceptDrift();
  /// Back to what was known before the first drift; if nothing was, suspect measurements are forgotten.
  void restore();

  bool isMeasured() const { return count >= kEnough; }
  /// The window is full, and the last measurement does not look like the first ones of a drift.
  bool isSettled() const;
  double measured() const { return least; }
  /// By how much more measurements would lower it, if disturbances were evenly distributed; 0 while nothing
  /// is measured.
  double doubt() const;
  double predicted() const { return prediction; }
  /// Measured before a drift that was not taken back.
  double undisturbed() const { return before > 0 ? before : least; }

private:
  double usual() const; // median of the window without the newest measurements
  void recount();

  double prediction, least = 0, before = 0; // before: the least measurement before a drift; 0 if none
  std::array<double, kWindow> window{};
  size_t count = 0, next = 0;
  bool hasSuspects = false;
};

} // namespace dspark
