// The shape function of resize: X, roi?, scales?, sizes? -> Y, as ONNX Resize-19, plus `layout` ("nchw" or
// "nhwc").
#include "kernels/common/expect.h"
#include "kernels/image/image.h"
#include <algorithm>

namespace dspark {
namespace {

template <typename E, size_t N>
bool readEnum(Attrs attrs, const char *name, const std::string_view (&names)[N], E &value,
              std::string_view &bad) {
  std::string_view text = attrs.s(name, names[0]);
  for (size_t i = 0; i < N; ++i)
    if (names[i] == text) {
      value = E(i);
      return true;
    }
  bad = name;
  return false;
}

// Memory axes that the entries of scales, sizes and roi belong to.
bool resizedAxes(InferContext &ctx, bool channelsLast, std::vector<int> &axes) {
  int rank = ctx.in[0].rank();
  std::span<const int64_t> attr = ctx.attrs.ints("axes");
  size_t count = attr.empty() ? size_t(rank) : attr.size();
  if (count > size_t(rank)) {
    ctx.error = "attribute axes has " + std::to_string(count) + " entries for " + ctx.in[0].str();
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    std::optional<int> axis = checkAxis(ctx, attr.empty() ? int64_t(i) : attr[i], rank);
    if (!axis)
      return false;
    axes.push_back(physicalAxis(*axis, rank, channelsLast));
  }
  for (size_t i = 1; i < count; ++i)
    if (std::count(axes.begin(), axes.begin() + ptrdiff_t(i), axes[i])) {
      ctx.error = "attribute axes repeats an axis";
      return false;
    }
  return true;
}

// floor(dim * scale), multiplied in f32 as ONNX's own shape inference and onnxruntime do.
Dim scaled(Dim dim, double scale) {
  if (dim.isConst()) {
    float product = float(dim.value()) * float(scale);
    return product < 0x1p62f ? Dim(int64_t(std::floor(product))) : Dim();
  }
  // Exact for scales such as 2, 0.5 and 1.25 while the product fits the 24 bits of an f32, as image sizes do.
  for (int64_t below = 1; below <= 64; below *= 2)
    if (double above = scale * double(below); above == std::floor(above) && above < 65536)
      return floorDiv(dim * Dim(int64_t(above)), Dim(below));
  return Dim();
}

InferStatus applyScales(InferContext &ctx, const std::vector<int> &axes) {
  const std::vector<double> *scales = ctx.floats(2);
  if (!scales) {
    for (int axis : axes)
      ctx.out[0].dims[size_t(axis)] = Dim();
    return askForContents(ctx, 2);
  }
  if (scales->size() != axes.size())
    return ctx.fail("scales must have " + std::to_string(axes.size()) + " entries, found " +
                    std::to_string(scales->size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    double scale = (*scales)[i];
    if (!(scale > 0) || !(scale < 1e9))
      return ctx.fail("scales must be positive numbers, found " + std::to_string(scale));
    Dim &dim = ctx.out[0].dims[size_t(axes[i])];
    dim = scaled(dim, scale);
  }
  return InferStatus::Ok;
}

// Both policies scale every axis by one factor, the smallest or largest ratio; needs numbers.
bool keepAspect(InferContext &ctx, const std::vector<int> &axes, const std::vector<Dim> &sizes,
                AspectPolicy policy) {
  double scale = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    Dim dim = ctx.in[0].dims[size_t(axes[i])];
    if (!dim.isConst() || !sizes[i].isConst() || dim.value() <= 0) {
      for (int axis : axes)
        ctx.out[0].dims[size_t(axis)] = Dim();
      return !dim.isConst() || !sizes[i].isConst();
    }
    double ratio = double(sizes[i].value()) / double(dim.value());
    scale = i == 0                              ? ratio
            : policy == AspectPolicy::NotLarger ? std::min(scale, ratio)
                                                : std::max(scale, ratio);
  }
  for (int axis : axes) {
    Dim &dim = ctx.out[0].dims[size_t(axis)];
    double size = std::floor(scale * double(dim.value()) + 0.5);
    dim = size < 0x1p62 ? Dim(int64_t(size)) : Dim();
  }
  return true;
}

InferStatus applySizes(InferContext &ctx, const std::vector<int> &axes, AspectPolicy policy) {
  const std::vector<Dim> *sizes = ctx.ints(3);
  if (!sizes) {
    for (int axis : axes)
      ctx.out[0].dims[size_t(axis)] = Dim();
    return askForContents(ctx, 3);
  }
  if (sizes->size() != axes.size())
    return ctx.fail("sizes must have " + std::to_string(axes.size()) + " entries, found " +
                    std::to_string(sizes->size()));
  bool isComplete = true;
  for (size_t i = 0; i < axes.size(); ++i) {
    if ((*sizes)[i].isConst() && (*sizes)[i].value() < 0)
      return ctx.fail("sizes must not be negative, found " + (*sizes)[i].str());
    isComplete &= !(*sizes)[i].isUnknown();
    ctx.out[0].dims[size_t(axes[i])] = (*sizes)[i];
  }
  if (!isComplete)
    return askForContents(ctx, 3);
  if (policy != AspectPolicy::Stretch) {
    for (int axis : axes)
      ctx.out[0].dims[size_t(axis)] = ctx.in[0].dims[size_t(axis)];
    if (!keepAspect(ctx, axes, *sizes, policy))
      return ctx.fail("keep_aspect_ratio_policy needs dims above 0, found " + ctx.in[0].str());
  }
  return InferStatus::Ok;
}

} // namespace

std::optional<ResizeAttrs> readResizeAttrs(Attrs attrs, std::string_view &bad) {
  constexpr std::string_view kModes[] = {"nearest", "linear", "cubic"};
  constexpr std::string_view kCoordinates[] = {"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                               "align_corners", "asymmetric",           "tf_crop_and_resize"};
  constexpr std::string_view kRoundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  constexpr std::string_view kPolicies[] = {"stretch", "not_larger", "not_smaller"};
  constexpr std::string_view kLayouts[] = {"nchw", "nhwc"};
  ResizeAttrs result;
  if (!readEnum(attrs, "mode", kModes, result.mode, bad) ||
      !readEnum(attrs, "coordinate_transformation_mode", kCoordinates, result.coordinates, bad) ||
      !readEnum(attrs, "nearest_mode", kRoundings, result.rounding, bad) ||
      !readEnum(attrs, "keep_aspect_ratio_policy", kPolicies, result.policy, bad) ||
      !readEnum(attrs, "layout", kLayouts, result.channelsLast, bad))
    return std::nullopt;
  return result;
}

InferStatus inferResize(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 4, 1, 1) || !expectFloat(ctx, 1) || !checkType(ctx, 2, DType::F32) ||
      !checkType(ctx, 3, DType::I64) || !expectRank(ctx, 1, 1) || !expectRank(ctx, 2, 1) ||
      !expectRank(ctx, 3, 1))
    return InferStatus::Error;
  std::string_view bad;
  std::optional<ResizeAttrs> attrs = readResizeAttrs(ctx.attrs, bad);
  if (!attrs)
    return ctx.fail("attribute " + std::string(bad) +
                    " has an unknown value: " + std::string(ctx.attrs.s(bad, "")));
  bool isWhole = dtypeBits(ctx.in[0].type) >= 8;
  if (attrs->mode == Interpolation::Nearest ? !isWhole : !isPlainNumber(ctx.in[0].type))
    return ctx.fail("cannot interpolate elements of " + ctx.in[0].str());
  if (attrs->mode == Interpolation::Nearest && ctx.attrs.i("antialias", 0))
    return ctx.fail("antialias needs mode linear or cubic");
  bool hasScales = ctx.has(2) && isGiven(ctx.in[2]), hasSizes = ctx.has(3) && isGiven(ctx.in[3]);
  if (hasScales == hasSizes)
    return ctx.fail("exactly one of scales and sizes must be given");
  ctx.out[0].type = ctx.in[0].type;
  if (!ctx.in[0].hasRank)
    return InferStatus::Ok;
  if (attrs->channelsLast && !expectRank(ctx, 0, 3, 5))
    return InferStatus::Error;
  std::vector<int> axes;
  if (!resizedAxes(ctx, attrs->channelsLast, axes) || !checkRank(ctx, ctx.in[0].dims.size()))
    return InferStatus::Error;
  if (attrs->coordinates == Coordinates::CropAndResize) {
    if (!ctx.has(1) || !expectSize(ctx, 1, 0, int64_t(axes.size()) * 2))
      return ctx.fail("tf_crop_and_resize needs a roi of " + std::to_string(axes.size() * 2) + " entries");
  }
  ctx.out[0] = TensorInfo::make(ctx.in[0].type, ctx.in[0].dims);
  InferStatus status = hasScales ? applyScales(ctx, axes) : applySizes(ctx, axes, attrs->policy);
  if (status != InferStatus::Ok)
    return status;
  for (size_t i = 0; i < ctx.out[0].dims.size(); ++i)
    if (ctx.in[0].dims[i].is(0) && ctx.out[0].dims[i].isConst() && !ctx.out[0].dims[i].is(0))
      return ctx.fail("cannot resize an empty dim to " + ctx.out[0].str());
  return InferStatus::Ok;
}

} // namespace dspark
