// Rows of the `matmul` operator whose B is packed in few bits (packed_format.h).
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

bool acceptsMatmulPacked(const KernelCall &call);
void prepareMatmulPacked(const KernelCall &call, KernelWork &work);
template <Isa isa>
void runMatmulPacked(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
