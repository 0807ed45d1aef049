#include "test/tiles/software_tiles.h"

#include "kernels/matmul/gemm_tiles.h"
#include "kernels/matmul/pack_loops.h"

namespace dspark {
const GemmOps gemmOpsAmx = {gemmTiles, packPanel, widenAny, kRowBlock};
} // namespace dspark
