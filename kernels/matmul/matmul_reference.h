// Scalar kernels of the matrix products: every type the shape functions let through, one row of the result
// per tile.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

void prepareMatmulReference(const KernelCall &call, KernelWork &work);
void runMatmulReference(const KernelCall &call, const KernelWork &work, const KernelPart &part);

void prepareEinsum(const KernelCall &call, KernelWork &work);
void runEinsum(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
