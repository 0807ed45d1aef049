// Rows of conv_integer and qlinear_conv, one per ISA level: the exact product of kernels/matmul/igemm.h.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

void prepareConvInteger(const KernelCall &call, KernelWork &work);
void prepareQlinearConv(const KernelCall &call, KernelWork &work);
/// Both operators.
template <Isa isa>
void runConvInteger(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
