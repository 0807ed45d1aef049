#include "kernels/matmul/gemm_bf16.h"
#include "kernels/matmul/terms_bf16.h"

#include "kernels/matmul/gemm_loops.h"

namespace dspark {
const Bf16GemmOps bf16GemmOpsAvx2 = {gemmTile, roundRows};
} // namespace dspark
