#include "kernels/matmul/igemm_vnni.h"

#include "kernels/matmul/igemm_quads.h"
#include "kernels/matmul/igemm_sums.h"

namespace dspark {
const IgemmOps igemmOpsAvx512 = {1,        quadTile,   packAny,     quadRow,
                                 quadFill, quadRowSum, sumsToBytes, sumsToFloats};
} // namespace dspark
