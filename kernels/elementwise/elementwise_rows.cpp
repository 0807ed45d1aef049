#include "kernels/common/families.h"

namespace dspark {

std::span<const Kernel> elementwiseKernels() { return {}; }

} // namespace dspark
