// Rows of matmul_integer and qlinear_matmul, one per ISA level.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

void prepareMatmulInteger(const KernelCall &call, KernelWork &work);
void prepareQlinearMatmul(const KernelCall &call, KernelWork &work);
/// Both operators.
template <Isa isa>
void runMatmulInteger(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
