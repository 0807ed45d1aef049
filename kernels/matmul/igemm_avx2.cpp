#include "kernels/matmul/igemm_pairs.h"

namespace dspark {
const IgemmOps igemmOpsAvx2 = {2, integerTile, packAny, rowAny, fillRow, rowSum, finishSums};
} // namespace dspark
