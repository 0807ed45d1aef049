// Data movement: operators that only rearrange elements, so that one kernel serves every type of a byte size.
#pragma once
#include "kernels/common/catalogue.h"
#include "kernels/common/kernel.h"

namespace dspark::movement {

// view_shape.cpp
InferStatus inferReshape(InferContext &ctx);
InferStatus inferSqueeze(InferContext &ctx);
InferStatus inferUnsqueeze(InferContext &ctx);
InferStatus inferFlatten(InferContext &ctx);
InferStatus inferIdentity(InferContext &ctx);
InferStatus inferShape(InferContext &ctx);
InferStatus inferSize(InferContext &ctx);

// join_shape.cpp
InferStatus inferTranspose(InferContext &ctx);
InferStatus inferConcat(InferContext &ctx);
InferStatus inferSplit(InferContext &ctx);
InferStatus inferExpand(InferContext &ctx);
InferStatus inferTile(InferContext &ctx);

// slice_shape.cpp
/// The elements start, start + step ... of one axis; start is inside the axis unless length is 0.
struct SliceRange {
  int64_t start, step, length;
};
/// ONNX's (numpy's) clamping of [start:end:step] to an axis of size dim; step is not 0.
SliceRange sliceRange(int64_t start, int64_t end, int64_t dim, int64_t step);
InferStatus inferSlice(InferContext &ctx);
InferStatus inferPad(InferContext &ctx);
InferStatus inferCenterCropPad(InferContext &ctx);

// block_shape.cpp
InferStatus inferDepthToSpace(InferContext &ctx);
InferStatus inferSpaceToDepth(InferContext &ctx);
InferStatus inferReverseSequence(InferContext &ctx);
InferStatus inferTrilu(InferContext &ctx);

} // namespace dspark::movement
