#include "kernels/common/families.h"

namespace dspark {

std::span<const OpEntry> movementOps() { return {}; }

} // namespace dspark
