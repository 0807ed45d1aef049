#include "kernels/common/families.h"

namespace dspark {

std::span<const Kernel> indexKernels() { return {}; }

} // namespace dspark
