#include "kernels/common/families.h"

namespace dspark {

std::span<const OpEntry> indexOps() { return {}; }

} // namespace dspark
