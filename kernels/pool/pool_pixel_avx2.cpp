#include "kernels/pool/pool_simd.h"

namespace dspark {
void (*const poolPixelAvx2)(const PoolPixel &) = poolPixelLoops;
} // namespace dspark
