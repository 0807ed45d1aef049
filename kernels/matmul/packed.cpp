#include "kernels/matmul/packed_column.h"
#include "kernels/matmul/packed_loops.h"

namespace dspark {
const PackedOps packedOpsBaseline = {packedTile<panelSums>, quantizeRow, rowCodeBytesOf, packedColumn,
                                     nullptr};
} // namespace dspark
