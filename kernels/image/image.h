// The image family: shape functions, prepare and run of its operators, and how resize reads its attributes.
#pragma once
#include "kernels/common/kernel.h"
#include <optional>

namespace dspark {

InferStatus inferResize(InferContext &ctx);
InferStatus inferGridSample(InferContext &ctx);
InferStatus inferAffineGrid(InferContext &ctx);
InferStatus inferRoiAlign(InferContext &ctx);
InferStatus inferNonMaxSuppression(InferContext &ctx);
InferStatus inferCol2Im(InferContext &ctx);

#define DSPARK_IMAGE_KERNEL(Name)                                                                            \
  void prepare##Name(const KernelCall &call, KernelWork &work);                                              \
  void run##Name(const KernelCall &call, const KernelWork &work, const KernelPart &part);
DSPARK_IMAGE_KERNEL(Resize)
DSPARK_IMAGE_KERNEL(GridSample)
DSPARK_IMAGE_KERNEL(AffineGrid)
DSPARK_IMAGE_KERNEL(RoiAlign)
DSPARK_IMAGE_KERNEL(NonMaxSuppression)
DSPARK_IMAGE_KERNEL(Col2Im)
#undef DSPARK_IMAGE_KERNEL

enum class Interpolation : uint8_t { Nearest, Linear, Cubic };
enum class Coordinates : uint8_t {
  HalfPixel,
  HalfPixelSymmetric,
  PytorchHalfPixel,
  AlignCorners,
  Asymmetric,
  CropAndResize
};
enum class Rounding : uint8_t { PreferFloor, PreferCeil, Floor, Ceil };
enum class AspectPolicy : uint8_t { Stretch, NotLarger, NotSmaller };

struct ResizeAttrs {
  Interpolation mode;
  Coordinates coordinates;
  Rounding rounding;
  AspectPolicy policy;
  bool channelsLast;
};
/// Nullopt, and in `bad` the name of the attribute, if one has an unknown value.
std::optional<ResizeAttrs> readResizeAttrs(Attrs attrs, std::string_view &bad);

/// The axis of the tensors in memory that scales, sizes, roi and axes call `axis`: those count in N, C,
/// spatial order even where `layout` says that memory is N, spatial, C.
inline int physicalAxis(int axis, int rank, bool channelsLast) {
  return !channelsLast || axis == 0 ? axis : axis == 1 ? rank - 1 : axis - 1;
}

/// Whether operand i of resize counts: absent and empty are the same.
inline bool isGiven(const TensorInfo &operand) {
  return operand.present() && !(operand.hasRank && operand.rank() == 1 && operand.dims[0].is(0));
}

} // namespace dspark
