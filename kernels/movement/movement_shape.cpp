#include "kernels/common/families.h"
#include "kernels/movement/movement.h"

namespace dspark {

std::span<const OpEntry> movementOps() {
  using namespace movement;
  static const OpEntry ops[] = {
      {.name = "reshape", .infer = inferReshape, .isView = true},
      {.name = "squeeze", .infer = inferSqueeze, .isView = true},
      {.name = "unsqueeze", .infer = inferUnsqueeze, .isView = true},
      {.name = "flatten", .infer = inferFlatten, .isView = true},
      {.name = "identity", .infer = inferIdentity, .isView = true},
      {.name = "shape", .infer = inferShape},
      {.name = "size", .infer = inferSize},
      {.name = "transpose", .infer = inferTranspose},
      {.name = "concat", .infer = inferConcat},
      {.name = "split", .infer = inferSplit},
      {.name = "expand", .infer = inferExpand},
      {.name = "tile", .infer = inferTile},
      {.name = "slice", .infer = inferSlice},
      {.name = "pad", .infer = inferPad},
      {.name = "center_crop_pad", .infer = inferCenterCropPad},
      {.name = "depth_to_space", .infer = inferDepthToSpace},
      {.name = "space_to_depth", .infer = inferSpaceToDepth},
      {.name = "reverse_sequence", .infer = inferReverseSequence},
      {.name = "trilu", .infer = inferTrilu, .inPlace = 1},
  };
  return ops;
}

} // namespace dspark
