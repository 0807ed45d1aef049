#include "kernels/common/tile_instructions.h"
#include "kernels/matmul/igemm_vnni.h"

#include "kernels/matmul/igemm_sums.h"
#include "kernels/matmul/igemm_tiles.h"

namespace dspark {
const IgemmOps igemmOpsAmx = {
    1, finishedTile<integerTiles>, packAny, quadRow, quadFill, quadRowSum, finishSums, nullptr, quadRuns};
} // namespace dspark
