#include "kernels/common/families.h"

namespace dspark {

std::span<const Kernel> signalKernels() { return {}; }

} // namespace dspark
