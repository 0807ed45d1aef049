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
  WindowAttrs window;
  if ((error = window.read(ctx.attrs, x.rank() - 2)))
    return ctx.fail(error);
  if (!ctx.attrs.has("kernel_shape"))
    return ctx.fail("kernel_shape: expected one entry per spatial dim");
  result.hasRank = true;
  result.dims = x.dims;
  for (int i = 0; i < window.rank; ++i) {
    int axis = i + (channelsLast ? 1 : 2);
    if (window.padBegin[i] >= window.extent(i) && window.padBegin[i] > 0)
      return ctx.fail("pads: expected less than the window's " + std::to_string(window.extent(i)) +
                      " elements, found " + std::to_string(window.padBegin[i]));
    result.dims[axis] = window.output(i, x.dims[axis]);
    if (result.dims[axis].isConst() && result.dims[axis].value() < 0)
      return ctx.fail("the window is larger than the padded input of " + x.dims[axis].str() + " elements");
  }
  if (hasIndices) {
    ctx.out[1].hasRank = true;
    ctx.out[1].dims = result.dims;
  }
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
      return ctx.needsContents(2);
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
    {"max_unpool", inferMaxUnpool},
};

} // namespace

std::span<const OpEntry> poolOps() { return kOps; }

} // namespace dspark
