// packed_experts: rows meet the experts they were sent to (mixture of experts).
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

void preparePackedExperts(const KernelCall &call, KernelWork &work);
template <Isa isa>
void runPackedExperts(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
