// Operators that address elements by index, select them by condition, or make tensors from a few numbers.
#pragma once
#include "kernels/common/catalogue.h"
#include "kernels/common/kernel.h"

namespace dspark::index_ops {

// gather_shape.cpp
InferStatus inferGather(InferContext &ctx);
InferStatus inferGatherElements(InferContext &ctx);
InferStatus inferGatherNd(InferContext &ctx);
InferStatus inferScatterElements(InferContext &ctx);
InferStatus inferScatterNd(InferContext &ctx);
InferStatus inferTensorScatter(InferContext &ctx);

// fill_shape.cpp
InferStatus inferConstantOfShape(InferContext &ctx);
InferStatus inferRange(InferContext &ctx);
InferStatus inferEyeLike(InferContext &ctx);
InferStatus inferOneHot(InferContext &ctx);

// select_shape.cpp
InferStatus inferTopK(InferContext &ctx);
InferStatus inferNonZero(InferContext &ctx);
InferStatus inferUnique(InferContext &ctx);
InferStatus inferCompress(InferContext &ctx);

} // namespace dspark::index_ops
