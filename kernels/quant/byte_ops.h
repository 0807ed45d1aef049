// Kernels of operators whose operands and results are 8-bit tensors with a scale and a zero point.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

void prepareLookup(const KernelCall &call, KernelWork &work);
void runLookup(const KernelCall &call, const KernelWork &work, const KernelPart &part);

void prepareQlinearBinary(const KernelCall &call, KernelWork &work);
template <Isa isa>
void runQlinearBinary(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
