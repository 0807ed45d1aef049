#include "kernels/matmul/packed_loops.h"

namespace dspark {
const PackedOps packedOpsBaseline = {packedTile, quantizeRow};
} // namespace dspark
