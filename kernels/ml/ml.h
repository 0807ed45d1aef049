// The ml family: classical machine learning (ai.onnx.ml on numbers), n-gram counts, determinants and inverses.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

InferStatus inferDet(InferContext &ctx);
InferStatus inferInverse(InferContext &ctx);
InferStatus inferBinarizer(InferContext &ctx);
InferStatus inferLabelEncoder(InferContext &ctx);
InferStatus inferTfIdf(InferContext &ctx);
InferStatus inferTreeEnsemble(InferContext &ctx);
InferStatus inferPairwiseProbability(InferContext &ctx);

#define DSPARK_ML_KERNEL(Name)                                                                               \
  void prepare##Name(const KernelCall &call, KernelWork &work);                                              \
  void run##Name(const KernelCall &call, const KernelWork &work, const KernelPart &part);
DSPARK_ML_KERNEL(Det)
DSPARK_ML_KERNEL(Inverse)
DSPARK_ML_KERNEL(Binarizer)
DSPARK_ML_KERNEL(LabelEncoder)
DSPARK_ML_KERNEL(TfIdf)
DSPARK_ML_KERNEL(TreeEnsemble)
DSPARK_ML_KERNEL(PairwiseProbability)
#undef DSPARK_ML_KERNEL

} // namespace dspark
