#include "kernels/matmul/igemm_bytes.h"

namespace dspark {
const IgemmOps igemmOpsAvx2Bytes = {1,          bytesTile,  packAny,       quadRow, quadFill,
                                    quadRowSum, finishSums, hasSmallPairs, quadRuns};
} // namespace dspark
