// Shapes of pooling and its inverse.
#include "kernels/common/families.h"
#include "kernels/common/infer.h"
#include "kernels/common/window.h"

namespace dspark {
namespace {

bool isPoolType(DType type) {
  switch (type) {
  case DType::F16:
  case DType::BF16:
  case DType::F32:
  case DType::F64:
  case DType::I8:
  case DType::U8:
    return true;
  default:
    return false;
  }
}

// The result's dims of a window over x.
bool poolDims(InferContext &ctx, bool channelsLast) {
  const TensorInfo &x = ctx.in[0];
  TensorInfo &result = ctx.out[0];
  WindowAttrs window;
  if (const char *error = window.read(ctx.attrs, x.rank() - 2)) {
    ctx.error = error;
    return false;
  }
  result.hasRank = true;
  result.dims = x.dims;
  for (int i = 0; i < window.rank; ++i) {
    int axis = i + (channelsLast ? 1 : 2);
    if (window.padBegin[i] >= window.extent(i) && window.padBegin[i] > 0) {
      ctx.error = "pads: expected less than the window's " + std::to_string(window.extent(i)) +
                  " elements, found " + std::to_string(window.padBegin[i]);
      return false;
    }
    result.dims[axis] = window.output(i, x.dims[axis]);
    if (result.dims[axis].isConst() && result.dims[axis].value() < 0) {
      ctx.error = "the window is larger than the padded input of " + x.dims[axis].str() + " elements";
      return false;
    }
  }
  return true;
}

InferStatus inferPool(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 2))
    return InferStatus::Error;
  std::string_view kind = ctx.attrs.s("kind", "max");
  if (kind != "max" && kind != "average" && kind != "lp")
    return ctx.fail("kind: expected max, average or lp, found " + std::string(kind));
  const TensorInfo &x = ctx.in[0];
  if (!isPoolType(x.type) || (kind != "max" && dtypeBits(x.type) == 8))
    return ctx.fail("expected a float operand, found " + x.str());
  if (int64_t p = ctx.attrs.i("p", 2); kind == "lp" && (p < 1 || p > 64))
    return ctx.fail("p: expected 1 to 64, found " + std::to_string(p));
  const char *error = nullptr;
  bool channelsLast = readChannelsLast(ctx.attrs, error);
  if (error)
    return ctx.fail(error);
  TensorInfo &result = ctx.out[0];
  result.type = x.type;
  bool hasIndices = ctx.out.size() > 1;
  if (hasIndices) {
    if (kind != "max" || channelsLast)
      return ctx.fail("indices: expected kind max and layout nchw");
    ctx.out[1].type = DType::I64;
  }
  if (!x.hasRank)
    return InferStatus::Ok;
  if (!ctx.attrs.has("kernel_shape"))
    return ctx.fail("kernel_shape: expected one entry per spatial dim");
  if (!poolDims(ctx, channelsLast))
    return InferStatus::Error;
  if (hasIndices) {
    ctx.out[1].hasRank = true;
    ctx.out[1].dims = result.dims;
  }
  return InferStatus::Ok;
}

// x, x_scale, x_zero_point, y_scale, y_zero_point; over all pixels without kernel_shape.
InferStatus inferQlinearPool(InferContext &ctx) {
  if (!checkCounts(ctx, 5, 5, 1, 1))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  for (size_t i : {0, 4})
    if (ctx.in[i].type != DType::I8 && ctx.in[i].type != DType::U8)
      return ctx.fail("operand " + std::to_string(i) + ": expected i8 or u8, found " + ctx.in[i].str());
  if (!checkType(ctx, 1, DType::F32) || !checkType(ctx, 2, x.type) || !checkType(ctx, 3, DType::F32))
    return InferStatus::Error;
  for (size_t i : {1, 2, 3, 4})
    if (!ctx.in[i].elements().isUnknown() && !mergeDims(ctx.in[i].elements(), Dim(1)))
      return ctx.fail("operand " + std::to_string(i) + ": expected one element, found " + ctx.in[i].str());
  const char *error = nullptr;
  bool channelsLast = readChannelsLast(ctx.attrs, error);
  if (error)
    return ctx.fail(error);
  ctx.out[0].type = ctx.in[4].type;
  if (!x.hasRank)
    return InferStatus::Ok;
  if (x.rank() < 3 || x.rank() > 2 + kMaxSpatial)
    return ctx.fail("expected one to three spatial dims, found " + x.str());
  if (ctx.attrs.has("kernel_shape"))
    return poolDims(ctx, channelsLast) ? InferStatus::Ok : InferStatus::Error;
  if (ctx.attrs.has("strides") || ctx.attrs.has("pads") || ctx.attrs.has("dilations") ||
      ctx.attrs.s("auto_pad", "NOTSET") != "NOTSET")
    return ctx.fail("kernel_shape: expected with other attributes of the window");
  ctx.out[0].hasRank = true;
  ctx.out[0].dims = x.dims;
  for (int i = 0; i < x.rank() - 2; ++i)
    ctx.out[0].dims[i + (channelsLast ? 1 : 2)] = Dim(1);
  return InferStatus::Ok;
}

// x, indices, output_shape?
InferStatus inferMaxUnpool(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 3, 1, 1))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  TensorInfo &result = ctx.out[0];
  result.type = x.type;
  if (!isPoolType(x.type) || !checkType(ctx, 1, DType::I64))
    return ctx.error.empty() ? ctx.fail("expected a float operand, found " + x.str()) : InferStatus::Error;
  if (!x.hasRank)
    return InferStatus::Ok;
  if (ctx.in[1].hasRank) {
    bool fits = ctx.in[1].rank() == x.rank();
    for (int d = 0; fits && d < x.rank(); ++d)
      fits = mergeDims(ctx.in[1].dims[d], x.dims[d]).has_value();
    if (!fits)
      return ctx.fail("indices: expected the dims of " + x.str() + ", found " + ctx.in[1].str());
  }
  WindowAttrs window;
  if (const char *error = window.read(ctx.attrs, x.rank() - 2))
    return ctx.fail(error);
  if (ctx.has(2)) {
    if (!checkType(ctx, 2, DType::I64))
      return InferStatus::Error;
    const std::vector<Dim> *shape = ctx.ints(2);
    if (!shape)
      return askForContents(ctx, 2);
    if (shape->size() != x.dims.size())
      return ctx.fail("output_shape: expected " + std::to_string(x.rank()) + " entries, found " +
                      std::to_string(shape->size()));
    for (size_t d = 0; d < shape->size(); ++d)
      if ((*shape)[d].isConst() && ((*shape)[d].value() < 0 || (d < 2 && !mergeDims((*shape)[d], x.dims[d]))))
        return ctx.fail("output_shape: found " + (*shape)[d].str() + " at " + std::to_string(d) + " for " +
                        x.str());
    result.hasRank = true;
    result.dims = *shape;
    return InferStatus::Ok;
  }
  result.hasRank = true;
  result.dims = x.dims;
  for (int i = 0; i < window.rank; ++i) {
    Dim size = (x.dims[2 + i] - Dim(1)) * Dim(window.stride[i]) +
               Dim(window.kernel[i] - window.padBegin[i] - window.padEnd[i]);
    if (size.isConst() && size.value() < 0)
      return ctx.fail("pads: the result would have " + size.str() + " elements");
    result.dims[2 + i] = size;
  }
  return InferStatus::Ok;
}

constexpr OpEntry kOps[] = {
    {"pool", inferPool},
    {"qlinear_pool", inferQlinearPool},
    {"max_unpool", inferMaxUnpool},
};

} // namespace

std::span<const OpEntry> poolOps() { return kOps; }

} // namespace dspark
