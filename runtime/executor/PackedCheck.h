// Packed weights against the shapes of the step that reads them.
#pragma once
#include "runtime/executor/Program.h"

namespace dspark {

/// Ok if every packed operand of the step is a constant whose layout is the step's `packed` attribute and
/// whose bytes suffice for `inputs`; else CorruptFile.
Status checkPackedOperands(const Program &program, const StepInfo &step, std::span<const TensorInfo> inputs);

} // namespace dspark
