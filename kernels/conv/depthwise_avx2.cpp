#include "kernels/conv/depthwise_loops.h"

namespace dspark {
void (*const depthwiseRowAvx2)(const DepthwiseRow &) = depthwiseRowLoops;
} // namespace dspark
