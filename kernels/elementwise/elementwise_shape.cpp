#include "kernels/common/families.h"

namespace dspark {

std::span<const OpEntry> elementwiseOps() { return {}; }

} // namespace dspark
