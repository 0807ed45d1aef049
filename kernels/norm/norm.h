// Softmax and normalisations.
#pragma once
#include "kernels/common/catalogue.h"
#include "kernels/common/kernel.h"

namespace dspark::norm_ops {

InferStatus inferSoftmax(InferContext &ctx);
InferStatus inferLayerNorm(InferContext &ctx);
InferStatus inferBatchNorm(InferContext &ctx);
InferStatus inferInstanceNorm(InferContext &ctx);
InferStatus inferGroupNorm(InferContext &ctx);
InferStatus inferLrn(InferContext &ctx);
InferStatus inferLpNorm(InferContext &ctx);
InferStatus inferMeanVarianceNorm(InferContext &ctx);

} // namespace dspark::norm_ops
