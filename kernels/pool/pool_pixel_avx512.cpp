#include "kernels/pool/pool_simd.h"

namespace dspark {
void (*const poolPixelAvx512)(const PoolPixel &) = poolPixelLoops;
} // namespace dspark
