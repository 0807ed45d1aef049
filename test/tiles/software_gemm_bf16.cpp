#include "test/tiles/software_tiles.h"

#include "kernels/matmul/gemm_bf16.h"
#include "kernels/matmul/gemm_bf16_tiles.h"

namespace dspark {
const Bf16GemmOps bf16GemmOpsAmx = {gemmBf16Tiles, roundRows};
} // namespace dspark
