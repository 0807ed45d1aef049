#include "kernels/conv/depthwise_loops.h"

namespace dspark {
void (*const depthwiseRowBaseline)(const DepthwiseRow &) = depthwiseRowLoops;
} // namespace dspark
