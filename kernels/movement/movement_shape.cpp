#include "kernels/common/families.h"
#include "kernels/movement/movement.h"

namespace dspark {

std::span<const OpEntry> movementOps() {
  using namespace movement;
  static const OpEntry ops[] = {
      {.name = "reshape", .infer = inferReshape, .isView = true, .takesStrings = true},
      {.name = "squeeze", .infer = inferSqueeze, .isView = true, .takesStrings = true},
      {.name = "unsqueeze", .infer = inferUnsqueeze, .isView = true, .takesStrings = true},
      {.name = "flatten", .infer = inferFlatten, .isView = true, .takesStrings = true},
      {.name = "identity", .infer = inferIdentity, .isView = true, .takesStrings = true},
      {.name = "shape", .infer = inferShape, .takesStrings = true},
      {.name = "size", .infer = inferSize, .takesStrings = true},
      {.name = "transpose", .infer = inferTranspose, .takesStrings = true},
      {.name = "concat", .infer = inferConcat, .takesStrings = true},
      {.name = "split", .infer = inferSplit, .takesStrings = true},
      {.name = "expand", .infer = inferExpand, .takesStrings = true},
      {.name = "tile", .infer = inferTile, .takesStrings = true},
      {.name = "slice", .infer = inferSlice, .takesStrings = true},
      {.name = "pad", .infer = inferPad, .takesStrings = true},
      {.name = "center_crop_pad", .infer = inferCenterCropPad, .takesStrings = true},
      {.name = "depth_to_space", .infer = inferDepthToSpace, .takesStrings = true},
      {.name = "space_to_depth", .infer = inferSpaceToDepth, .takesStrings = true},
      {.name = "reverse_sequence", .infer = inferReverseSequence, .takesStrings = true},
      {.name = "trilu", .infer = inferTrilu, .inPlace = 1},
  };
  return ops;
}

} // namespace dspark
