#include "kernels/conv/qdepthwise_loops.h"
#include "kernels/conv/qdepthwise_quads.h"

namespace dspark {
const QDepthwiseOps qdepthwiseOpsAvx512 = {depthwiseRow8, widenWeights, depthwiseColumns, depthwiseWeights};
} // namespace dspark
