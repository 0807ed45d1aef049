#include "kernels/common/families.h"

namespace dspark {

std::span<const Kernel> poolKernels() { return {}; }

} // namespace dspark
