#include "kernels/conv/qdepthwise_loops.h"

namespace dspark {
const QDepthwiseOps qdepthwiseOpsAvx512 = {depthwiseRow8, widenWeights};
} // namespace dspark
