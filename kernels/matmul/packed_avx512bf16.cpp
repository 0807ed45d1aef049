#include "kernels/matmul/packed_dots.h"

namespace dspark {
const PackedOps packedOpsAvx512Bf16 = {dotTile, nullptr, nullptr, nullptr, roundRow};
} // namespace dspark
