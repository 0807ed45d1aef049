#include "kernels/pool/pool_simd.h"

namespace dspark {
void (*const poolPixelBaseline)(const PoolPixel &) = poolPixelLoops;
} // namespace dspark
