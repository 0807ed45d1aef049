#include "kernels/common/families.h"

namespace dspark {

std::span<const Kernel> movementKernels() { return {}; }

} // namespace dspark
