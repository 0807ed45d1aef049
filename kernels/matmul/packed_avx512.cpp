#include "kernels/matmul/packed_loops.h"

namespace dspark {
const PackedOps packedOpsAvx512 = {packedTile, quantizeRow};
} // namespace dspark
