#include "kernels/matmul/igemm_loops.h"

namespace dspark {
const IgemmOps igemmOpsBaseline = {integerTile, packAny, unpackAny, rowAny};
} // namespace dspark
