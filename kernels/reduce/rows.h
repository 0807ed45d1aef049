// The kernel rows of reductions, by file.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark::reduce_ops {

std::span<const Kernel> reduceKernelRows();
std::span<const Kernel> argReduceRows();
std::span<const Kernel> cumulativeRows();

} // namespace dspark::reduce_ops
