#include "kernels/matmul/igemm_vnni.h"

#include "kernels/matmul/igemm_finished_quads.h"

namespace dspark {
const IgemmOps igemmOpsAvx512 = {1,          finishedQuadTile, packAny, quadRow, quadFill,
                                 quadRowSum, finishQuadSums,   nullptr, quadRuns};
} // namespace dspark
