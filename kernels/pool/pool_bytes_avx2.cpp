#include "kernels/pool/pool_bytes_loops.h"

namespace dspark {
const PoolBytesOps poolBytesOpsAvx2 = {maxBytes, averageBytes};
} // namespace dspark
