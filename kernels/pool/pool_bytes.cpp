#include "kernels/pool/pool_bytes_loops.h"

namespace dspark {
const PoolBytesOps poolBytesOpsBaseline = {maxBytes, averageBytes};
} // namespace dspark
