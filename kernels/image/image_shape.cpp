#include "kernels/common/families.h"

namespace dspark {

std::span<const OpEntry> imageOps() { return {}; }

} // namespace dspark
