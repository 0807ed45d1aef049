#include "kernels/common/families.h"

namespace dspark {

std::span<const Kernel> imageKernels() { return {}; }

} // namespace dspark
