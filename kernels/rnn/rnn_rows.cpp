#include "kernels/common/families.h"

namespace dspark {

std::span<const Kernel> rnnKernels() { return {}; }

} // namespace dspark
