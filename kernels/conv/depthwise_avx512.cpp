#include "kernels/conv/depthwise_loops.h"

namespace dspark {
void (*const depthwiseRowAvx512)(const DepthwiseRow &) = depthwiseRowLoops;
} // namespace dspark
