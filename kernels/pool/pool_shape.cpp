#include "kernels/common/families.h"

namespace dspark {

std::span<const OpEntry> poolOps() { return {}; }

} // namespace dspark
