#include "kernels/common/families.h"

namespace dspark {

std::span<const OpEntry> attentionOps() { return {}; }

} // namespace dspark
