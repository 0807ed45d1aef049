#include "runtime/executor/Segment.h"
#include "runtime/executor/LoopRunner.h"

namespace dspark {

Segment::Segment(int &liveSegments) : liveSegments(liveSegments) { ++liveSegments; }
Segment::~Segment() { --liveSegments; }

} // namespace dspark
