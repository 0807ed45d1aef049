#include "kernels/matmul/terms_f32.h"

#include "kernels/matmul/gemm_loops.h"
#include "kernels/matmul/pack_loops.h"

namespace dspark {
const GemmOps gemmOpsAvx2 = {gemmTile, packPanel, widenAny, kRowBlock};
} // namespace dspark
