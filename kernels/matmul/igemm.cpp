#include "kernels/matmul/igemm_pairs.h"
#include "kernels/matmul/igemm_sums.h"

namespace dspark {
const IgemmOps igemmOpsBaseline = {2,       integerTile, packAny,     rowAny,
                                   fillRow, rowSum,      sumsToBytes, sumsToFloats};
} // namespace dspark
