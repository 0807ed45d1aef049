#include "kernels/matmul/packed_column.h"
#include "kernels/matmul/packed_loops.h"

namespace dspark {
const PackedOps packedOpsAvx2 = {packedTile, quantizeRow, rowCodeBytesOf, packedColumn};
} // namespace dspark
