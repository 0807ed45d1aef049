#include "kernels/matmul/packed_loops.h"

namespace dspark {
const PackedOps packedOpsAvx2 = {packedTile, quantizeRow};
} // namespace dspark
