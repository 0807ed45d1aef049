#include "kernels/matmul/igemm_vnni.h"

#include "kernels/matmul/igemm_quads.h"
#include "kernels/matmul/igemm_sums.h"

namespace dspark {
const IgemmOps igemmOpsAvx512 = {1,         finishedTile<quadTile>, packAny, quadRow, quadFill, quadRowSum,
                                 finishSums};
} // namespace dspark
