// Rows of conv_integer and qlinear_conv, one per ISA level: the exact product of kernels/matmul/igemm.h.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

/// Weights are row-major or panel16k4.
bool acceptsConvInteger(const KernelCall &call);
void prepareConvInteger(const KernelCall &call, KernelWork &work);
void prepareQlinearConv(const KernelCall &call, KernelWork &work);
/// Both operators.
template <Isa isa>
void runConvInteger(const KernelCall &call, const KernelWork &work, const KernelPart &part);

/// qlinear_conv with packed depthwise weights.
bool acceptsQlinearDepthwise(const KernelCall &call);
void prepareQlinearDepthwise(const KernelCall &call, KernelWork &work);
template <Isa isa>
void runQlinearDepthwise(const KernelCall &call, const KernelWork &work, const KernelPart &part);

/// qlinear_conv, 3x3, where the exact Winograd transform is cheaper (qwinograd.h).
template <Isa isa> bool acceptsQlinearWinograd(const KernelCall &call);
void prepareQlinearWinograd(const KernelCall &call, KernelWork &work);
template <Isa isa>
void runQlinearWinograd(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
