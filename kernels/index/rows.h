// The kernel rows of indexing, by file.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark::index_ops {

std::span<const Kernel> gatherKernels();  // gather, gather_elements, gather_nd
std::span<const Kernel> scatterKernels(); // scatter_elements, scatter_nd, tensor_scatter
std::span<const Kernel> fillKernels();    // constant_of_shape, range, eye_like, one_hot
std::span<const Kernel> selectKernels();  // nonzero, compress
std::span<const Kernel> topKKernels();    // top_k
std::span<const Kernel> uniqueKernels();  // unique

} // namespace dspark::index_ops
