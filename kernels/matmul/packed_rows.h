#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

void preparePackedRows(const KernelCall &call, KernelWork &work);
template <Isa isa> void runPackedRows(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
