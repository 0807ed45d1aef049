#include "kernels/pool/pool_bytes_loops.h"

namespace dspark {
const PoolBytesOps poolBytesOpsAvx512 = {maxBytes, averageBytes};
} // namespace dspark
