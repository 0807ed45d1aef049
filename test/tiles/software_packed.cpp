#include "test/tiles/software_tiles.h"

#include "kernels/matmul/packed_column.h"
#include "kernels/matmul/packed_tiles.h"

namespace dspark {
const PackedOps packedOpsAmx = {packedTile<tilePanelSums>, quantizeRow, rowCodeBytesOf, packedColumn,
                                splitRow};
} // namespace dspark
