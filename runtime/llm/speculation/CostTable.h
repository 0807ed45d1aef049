// How long a step takes, measured: the steps-per-second table that decides which drafts are worth verifying.
// Two tables of this kind are kept: of the model's steps, and of each drafter's.
#pragma once
#include "runtime/base/Status.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dspark::llm {

/// A measured step: one row for each of `sequences`, and `drafts` rows more. In the table of a drafter, the
/// step that drafts for `sequences` and at most `drafts` tokens each.
struct CostPoint {
  int32_t sequences = 1;
  int32_t drafts = 0;
  double seconds = 0;
};

/// Points are lines of equal `sequences`. Along a line seconds never fall (noise that says so is averaged
/// away, by isotonic regression); between points and lines they are interpolated, past the last ones they go
/// on with the steeper of the last and the mean slope. Observed steps correct the table while it is used.
class CostTable {
public:
  enum class Kind {
    Model,   // must rise with drafts: a flat table would mean "verify everything", always
    Drafter, // may be flat: a block of drafts in one pass
  };

  /// The points that are worth measuring for up to `sequences` sequences and `drafts` drafts of each, in
  /// order.
  static std::vector<CostPoint> pointsToMeasure(int32_t sequences, int32_t drafts);

  /// Errors: no point; a point without sequences, of negative drafts or of seconds that are not positive; two
  /// lines or points alike; a line of a model's table that has no second point or rises by less than 1 %.
  static StatusOr<CostTable> create(std::vector<CostPoint> points, Kind kind = Kind::Model);

  /// Puts points between the measured ones, at every number of sequences and drafts that pointsToMeasure has.
  /// They are guesses, which the first such steps replace: a step's time rises in stairs, and only the steps
  /// themselves tell where.
  void refine();

  double seconds(int32_t sequences, int32_t drafts) const;

  /// Takes in a step that was run. What it says of speed as such (a busy machine, longer contexts) moves the
  /// whole table quickly, the rest the neighbouring points slowly. Steps off by more than a factor 2 count as
  /// that much: a hiccup.
  void observe(int32_t sequences, int32_t drafts, double seconds);

  /// The table as text, and back: rows [sequences, drafts, seconds, steps that this is known from (1 to 20;
  /// if missing, 20)]. What fromJson takes is checked as by create.
  std::string toJson() const;
  static StatusOr<CostTable> fromJson(std::string_view json, Kind kind = Kind::Model);

private:
  struct Line {
    std::vector<int32_t> drafts;
    std::vector<double> measured; // as given and corrected
    std::vector<double> known;    // steps that each counts for, at most kMostKnown
    std::vector<double> seconds;  // the same, never falling
  };
  struct Neighbours { // of a query: weights of the points left and right of it
    size_t left, right;
    double toRight;
  };

  void addLines();
  static void addWidths(Line &line);
  static void correct(Line &line, size_t point, double ratio, double weight);
  static double onLine(const Line &line, double drafts);
  static Neighbours neighbours(const std::vector<int32_t> &at, int32_t query);

  std::vector<int32_t> lineSequences; // of the lines, ascending
  std::vector<Line> lines;
  double speed = 1; // seconds now, of those in the table
};

} // namespace dspark::llm
