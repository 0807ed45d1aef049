// A block traced for one set of argument shapes: a tree of segments that grows as runs meet new data.
#pragma once
#include "runtime/executor/Context.h"
#include "runtime/executor/Segment.h"

namespace dspark {

class Trace {
public:
  /// Traces the first segment. `slots` holds the pointers of the arguments and captures that `state` puts in
  /// slots.
  static StatusOr<std::unique_ptr<Trace>> create(Context &context, TraceState state, int depth,
                                                 std::vector<const void *> slots);
  ~Trace();

  /// The pointers of the arguments, to be set before each run.
  std::vector<const void *> slots;
  /// How many of them are arguments and captures; loops add more.
  int argumentSlots() const { return arguments; }
  Status run();
  /// Results of the last run; their bytes live in the arena (or wherever a slot points) until the next run at
  /// this depth.
  const std::vector<PlacedTensor> &results() const { return last->results; }
  /// Shapes of the results before any run, if they do not depend on data; else null.
  const std::vector<PlacedTensor> *staticResults() const;
  /// The segment the last run ended in, for its memory figures.
  const Segment &lastSegment() const { return *last; }
  const Segment &firstSegment() const { return *root; }

private:
  Trace(Context &context, int depth) : context(context), depth(depth) {}
  Status execute(Segment &segment);
  Status executeMeasured(Segment &segment);
  Status executeTimed(Segment &segment);
  Status runCommand(Segment &segment, const Record &record);
  Status addDeviceTimes(Segment &segment);
  void patch(Segment &segment);
  bool isSerial(const Record &record) const;
  double virtualSeconds(const Record &record) const;
  void runRecord(const Record &record);
  Status observe(Segment &segment);
  StatusOr<Segment *> follow(Segment &segment);

  Context &context;
  int depth;
  int arguments = 0;
  std::unique_ptr<Segment> root;
  Segment *last = nullptr;
};

} // namespace dspark
