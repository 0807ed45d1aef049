// Ranges of the values that may become bytes, from runs of a plan that shows them.
#pragma once
#include "compiler/Pipeline/Compile.h"
#include "tools/dspark-compile/Calibration.h"

namespace dspark {

/// `observing` is a plan of ByteMode::Observe with that many values. The sets that decide are run twice, for
/// the extremes and for what lies between.
StatusOr<std::vector<ByteRange>> observeRanges(Session &observing, Calibration &calibration, size_t values);

} // namespace dspark
