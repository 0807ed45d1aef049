#include "kernels/matmul/packed_column.h"
#include "kernels/matmul/packed_loops.h"

namespace dspark {
const PackedOps packedOpsAvx512 = {packedTile<panelSums>, quantizeRow, rowCodeBytesOf, packedColumn, nullptr};
} // namespace dspark
