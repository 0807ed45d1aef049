// Rows of matmul and matmul_dequant that compute in f32, one per ISA level.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

bool acceptsMatmulF32(const KernelCall &call);
void prepareMatmulF32(const KernelCall &call, KernelWork &work);
void prepareMatmulDequant(const KernelCall &call, KernelWork &work);
/// Both operators.
template <Isa isa> void runMatmulF32(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
