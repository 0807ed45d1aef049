#include "kernels/matmul/igemm_loops.h"

namespace dspark {
const IgemmOps igemmOpsAvx512 = {integerTile, packAny, unpackAny, rowAny};
} // namespace dspark
