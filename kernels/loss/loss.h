// The loss family: losses over class scores and single steps of optimisers.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

InferStatus inferLoss(InferContext &ctx);
InferStatus inferMomentum(InferContext &ctx);
InferStatus inferAdagrad(InferContext &ctx);
InferStatus inferAdam(InferContext &ctx);

#define DSPARK_LOSS_KERNEL(Name)                                                                             \
  void prepare##Name(const KernelCall &call, KernelWork &work);                                              \
  void run##Name(const KernelCall &call, const KernelWork &work, const KernelPart &part);
DSPARK_LOSS_KERNEL(NegativeLogLikelihood)
DSPARK_LOSS_KERNEL(SoftmaxCrossEntropy)
DSPARK_LOSS_KERNEL(Momentum)
DSPARK_LOSS_KERNEL(Adagrad)
DSPARK_LOSS_KERNEL(Adam)
#undef DSPARK_LOSS_KERNEL

} // namespace dspark
