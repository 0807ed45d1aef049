// Rows of dynamic_quantize_lstm, one per ISA level.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

void prepareDynamicQuantizeLstm(const KernelCall &call, KernelWork &work);
template <Isa isa>
void runDynamicQuantizeLstm(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
