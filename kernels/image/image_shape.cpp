// Shape functions of the image family other than resize.
#include "kernels/common/expect.h"
#include "kernels/common/families.h"
#include "kernels/image/image.h"

namespace dspark {
namespace {

bool expectOneOf(InferContext &ctx, const char *name, std::string_view otherwise,
                 std::initializer_list<std::string_view> values) {
  std::string_view found = ctx.attrs.s(name, otherwise);
  std::string list;
  for (std::string_view value : values) {
    if (value == found)
      return true;
    list += (list.empty() ? "" : ", ") + std::string(value);
  }
  ctx.error = "attribute " + std::string(name) + " must be one of " + list + ", found " + std::string(found);
  return false;
}

constexpr int kMaxSpatial = 4; // cubic sampling reads 4^spatial values per output

} // namespace

// X [N,C,D1..Dr], grid [N,O1..Or,r] -> [N,C,O1..Or]
InferStatus inferGridSample(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1) || !expectNumber(ctx, 0) || !expectFloat(ctx, 1) ||
      !expectOneOf(ctx, "mode", "linear", {"linear", "nearest", "cubic", "bilinear", "bicubic"}) ||
      !expectOneOf(ctx, "padding_mode", "zeros", {"zeros", "border", "reflection"}) ||
      !expectRank(ctx, 0, 3, kMaxSpatial + 2) || !expectRank(ctx, 1, 3, kMaxSpatial + 2))
    return InferStatus::Error;
  ctx.out[0].type = ctx.in[0].type;
  if (!ctx.in[0].hasRank && !ctx.in[1].hasRank)
    return InferStatus::Ok;
  int rank = ctx.in[0].hasRank ? ctx.in[0].rank() : ctx.in[1].rank();
  Dim batch;
  if (!expectRank(ctx, 1, rank) || !expectDim(ctx, 0, 0, batch) || !expectDim(ctx, 1, 0, batch) ||
      !expectSize(ctx, 1, rank - 1, rank - 2))
    return InferStatus::Error;
  for (int i = 2; i < rank; ++i)
    if (dimAt(ctx, 0, i).is(0))
      return ctx.fail("cannot sample an empty image " + ctx.in[0].str());
  std::vector<Dim> dims = {batch, dimAt(ctx, 0, 1)};
  for (int i = 1; i < rank - 1; ++i)
    dims.push_back(dimAt(ctx, 1, i));
  ctx.out[0] = TensorInfo::make(ctx.in[0].type, std::move(dims));
  return InferStatus::Ok;
}

// theta [N,2,3] | [N,3,4], size i64[4] | i64[5] -> grid [N,H,W,2] | [N,D,H,W,3]
InferStatus inferAffineGrid(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1) || !expectFloat(ctx, 0) || !expectRank(ctx, 0, 3) ||
      !checkType(ctx, 1, DType::I64) || !expectRank(ctx, 1, 1))
    return InferStatus::Error;
  ctx.out[0].type = ctx.in[0].type;
  const std::vector<Dim> *size = ctx.ints(1);
  Dim entries = size ? Dim(int64_t(size->size())) : dimAt(ctx, 1, 0);
  if (entries.isConst() && !entries.is(4) && !entries.is(5))
    return ctx.fail("size must have 4 or 5 entries, found " + entries.str());
  if (!size)
    return askForContents(ctx, 1);
  int64_t spatial = entries.value() - 2;
  Dim batch = (*size)[0];
  if (!expectDim(ctx, 0, 0, batch) || !expectSize(ctx, 0, 1, spatial) || !expectSize(ctx, 0, 2, spatial + 1))
    return InferStatus::Error;
  std::vector<Dim> dims = {batch};
  for (int64_t i = 2; i < spatial + 2; ++i) {
    Dim dim = (*size)[size_t(i)];
    if (dim.isConst() && dim.value() < 0)
      return ctx.fail("size must not be negative, found " + dim.str());
    dims.push_back(dim);
  }
  dims.push_back(Dim(spatial));
  bool isComplete = true;
  for (Dim dim : dims)
    isComplete &= !dim.isUnknown();
  ctx.out[0] = TensorInfo::make(ctx.in[0].type, std::move(dims));
  return isComplete ? InferStatus::Ok : askForContents(ctx, 1);
}

// X [N,C,H,W], rois [R,4], batch_indices i64[R] -> [R,C,output_height,output_width]
InferStatus inferRoiAlign(InferContext &ctx) {
  constexpr int64_t kMaxSize = 1 << 20;
  if (!checkCounts(ctx, 3, 3, 1, 1) || !expectFloat(ctx, 0) || !expectSameType(ctx, 1, 0) ||
      !checkType(ctx, 2, DType::I64) || !expectRank(ctx, 0, 4) || !expectRank(ctx, 1, 2) ||
      !expectRank(ctx, 2, 1) || !expectSize(ctx, 1, 1, 4) ||
      !expectOneOf(ctx, "mode", "avg", {"avg", "max"}) ||
      !expectOneOf(ctx, "coordinate_transformation_mode", "half_pixel",
                   {"half_pixel", "output_half_pixel"}) ||
      !attrInRange(ctx, "sampling_ratio", 0, 0, 4096))
    return InferStatus::Error;
  std::optional<int64_t> height = attrInRange(ctx, "output_height", 1, 1, kMaxSize);
  std::optional<int64_t> width = height ? attrInRange(ctx, "output_width", 1, 1, kMaxSize) : std::nullopt;
  Dim rois;
  if (!width || !expectDim(ctx, 1, 0, rois) || !expectDim(ctx, 2, 0, rois))
    return InferStatus::Error;
  ctx.out[0] = TensorInfo::make(ctx.in[0].type, {rois, dimAt(ctx, 0, 1), Dim(*height), Dim(*width)});
  return InferStatus::Ok;
}

// boxes [N,S,4], scores [N,C,S], max_output_boxes_per_class?, iou_threshold?, score_threshold? -> i64[kept,3]
InferStatus inferNonMaxSuppression(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 5, 1, 1) || !checkType(ctx, 0, DType::F32) || !checkType(ctx, 1, DType::F32) ||
      !checkType(ctx, 2, DType::I64) || !checkType(ctx, 3, DType::F32) || !checkType(ctx, 4, DType::F32) ||
      !expectRank(ctx, 0, 3) || !expectRank(ctx, 1, 3) || !expectScalar(ctx, 2) || !expectScalar(ctx, 3) ||
      !expectScalar(ctx, 4) || !expectSize(ctx, 0, 2, 4) || !attrInRange(ctx, "center_point_box", 0, 0, 1))
    return InferStatus::Error;
  Dim batch, boxes;
  if (!expectDim(ctx, 0, 0, batch) || !expectDim(ctx, 1, 0, batch) || !expectDim(ctx, 0, 1, boxes) ||
      !expectDim(ctx, 1, 2, boxes))
    return InferStatus::Error;
  ctx.dimsFromKernel = true;
  Dim limit = ctx.has(2) ? scalarInt(ctx, 2) : Dim(0), perClass = boxes;
  if (limit.isConst())
    perClass = min(boxes, max(limit, Dim(0)));
  ctx.out[0] = TensorInfo::make(DType::I64, {batch * dimAt(ctx, 1, 1) * perClass, Dim(3)});
  return InferStatus::Ok;
}

// input [N, C * prod(block), L], image_shape i64[r], block_shape i64[r] -> [N,C,image...]
InferStatus inferCol2Im(InferContext &ctx) {
  if (!checkCounts(ctx, 3, 3, 1, 1) || !expectNumber(ctx, 0) || !expectRank(ctx, 0, 3) ||
      !checkType(ctx, 1, DType::I64) || !checkType(ctx, 2, DType::I64) || !expectRank(ctx, 1, 1) ||
      !expectRank(ctx, 2, 1))
    return InferStatus::Error;
  ctx.out[0].type = ctx.in[0].type;
  std::optional<std::vector<int64_t>> block = constInts(ctx, 2);
  const std::vector<Dim> *image = ctx.ints(1);
  if (!image)
    return askForContents(ctx, 1);
  if (!block)
    return askForContents(ctx, 2);
  size_t rank = image->size();
  if (rank == 0 || rank > size_t(kMaxRank) - 2 || block->size() != rank)
    return ctx.fail("image_shape and block_shape must have 1 to " + std::to_string(kMaxRank - 2) +
                    " entries each, found " + std::to_string(rank) + " and " + std::to_string(block->size()));
  std::span<const int64_t> strides = ctx.attrs.ints("strides"), pads = ctx.attrs.ints("pads"),
                           dilations = ctx.attrs.ints("dilations");
  if ((!strides.empty() && strides.size() != rank) || (!pads.empty() && pads.size() != 2 * rank) ||
      (!dilations.empty() && dilations.size() != rank))
    return ctx.fail("strides, pads and dilations must have " + std::to_string(rank) + ", " +
                    std::to_string(2 * rank) + " and " + std::to_string(rank) + " entries");
  constexpr int64_t kMax = int64_t(1) << 31;
  Dim blockSize(1), blocks(1);
  std::vector<Dim> dims = {dimAt(ctx, 0, 0), Dim()};
  bool isComplete = true;
  for (size_t i = 0; i < rank; ++i) {
    int64_t stride = strides.empty() ? 1 : strides[i], dilation = dilations.empty() ? 1 : dilations[i];
    int64_t before = pads.empty() ? 0 : pads[i], after = pads.empty() ? 0 : pads[rank + i];
    if (stride < 1 || stride > kMax || dilation < 1 || dilation > kMax || before < 0 || before > kMax ||
        after < 0 || after > kMax || (*block)[i] < 1 || (*block)[i] > kMax)
      return ctx.fail("strides, dilations and block_shape must be positive and pads not negative");
    Dim size = (*image)[i];
    if (size.isConst() && (size.value() < 0 || size.value() > kMax))
      return ctx.fail("image_shape must not be negative, found " + size.str());
    isComplete &= !size.isUnknown();
    blockSize = blockSize * Dim((*block)[i]);
    Dim reach = Dim(dilation) * Dim((*block)[i] - 1) + Dim(1);
    Dim count = floorDiv(size + Dim(before) + Dim(after) - reach, Dim(stride)) + Dim(1);
    if (count.isConst() && count.value() < 1)
      return ctx.fail("the block does not fit the padded image along axis " + std::to_string(i));
    blocks = blocks * count;
    dims.push_back(size);
  }
  if (!blockSize.isConst())
    return ctx.fail("block_shape has too many elements");
  Dim columns = dimAt(ctx, 0, 1);
  if (columns.isConst() && columns.value() % blockSize.value() != 0)
    return ctx.fail("dim 1 of operand 0 must be a multiple of the block's " + blockSize.str() +
                    " elements, found " + ctx.in[0].str());
  if (!expectDim(ctx, 0, 2, blocks))
    return InferStatus::Error;
  dims[1] = floorDiv(columns, blockSize);
  ctx.out[0] = TensorInfo::make(ctx.in[0].type, std::move(dims));
  return isComplete ? InferStatus::Ok : askForContents(ctx, 1);
}

std::span<const OpEntry> imageOps() {
  static constexpr OpEntry kOps[] = {
      {"resize", inferResize},
      {"grid_sample", inferGridSample},
      {"affine_grid", inferAffineGrid},
      {"roi_align", inferRoiAlign},
      {"non_max_suppression", inferNonMaxSuppression},
      {"col2im", inferCol2Im},
  };
  return kOps;
}

} // namespace dspark
