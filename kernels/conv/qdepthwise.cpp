#include "kernels/conv/qdepthwise_loops.h"

namespace dspark {
const QDepthwiseOps qdepthwiseOpsBaseline = {depthwiseRow8, widenWeights};
} // namespace dspark
