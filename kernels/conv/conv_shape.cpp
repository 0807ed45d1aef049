#include "kernels/common/families.h"

namespace dspark {

std::span<const OpEntry> convOps() { return {}; }

} // namespace dspark
