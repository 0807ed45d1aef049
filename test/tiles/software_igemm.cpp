#include "test/kernels/matmul/software_quads.h"
#include "test/tiles/software_tiles.h"

#include "kernels/matmul/igemm_sums.h"
#include "kernels/matmul/igemm_tiles.h"

namespace dspark {
const IgemmOps igemmOpsAmx = {1,         finishedTile<integerTiles>, packAny, quadRow, quadFill, quadRowSum,
                              finishSums};
} // namespace dspark
