// Tensors made from a few numbers.
#include "kernels/common/infer.h"
#include "kernels/index/index.h"
#include <cmath>

namespace dspark::index_ops {
namespace {

// Attribute `name` as an element type; Undefined with an error if it is no code.
DType typeAttr(InferContext &ctx, std::string_view name, DType otherwise) {
  int64_t code = ctx.attrs.i(name, int64_t(otherwise));
  if (code > 0 && code < kDTypeCount)
    return DType(code);
  ctx.error = std::string(name) + " is " + std::to_string(code) + ", which is no element type";
  return DType::Undefined;
}

} // namespace

// Attributes: `value`, one number (default 0), and `dtype`, the element type (default f32, or i64 where
// `value` is an integer).
InferStatus inferConstantOfShape(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1) || !checkIntegers(ctx, 0))
    return InferStatus::Error;
  bool isInt = !ctx.attrs.ints("value").empty();
  TensorInfo &y = ctx.out[0];
  y.type = typeAttr(ctx, "dtype", isInt ? DType::I64 : DType::F32);
  if (!y.present())
    return InferStatus::Error;
  const std::vector<Dim> *shape = ctx.ints(0);
  if (!shape) {
    const TensorInfo &info = ctx.in[0];
    if (info.rank() == 1 && info.dims[0].isConst() && info.dims[0].value() >= 0 &&
        info.dims[0].value() <= kMaxRank)
      y = TensorInfo::make(y.type, std::vector<Dim>(size_t(info.dims[0].value())));
    return askForContents(ctx, 0);
  }
  if (!checkRank(ctx, shape->size()))
    return InferStatus::Error;
  bool needs = false;
  for (Dim dim : *shape) {
    if (dim.isConst() && dim.value() < 0)
      return ctx.fail("the shape has the entry " + dim.str() + ", expected 0 or more");
    needs |= dim.isUnknown();
  }
  y = TensorInfo::make(y.type, *shape);
  int64_t count = knownElements(y);
  if (count >= 0 && count <= kMaxKnownElements) {
    if (isFloat(y.type)) {
      double otherwise = double(ctx.attrs.i("value", 0));
      y.hasContents = true;
      y.floats.assign(size_t(count), ctx.attrs.f("value", otherwise));
    } else if (isInt || !ctx.attrs.has("value")) {
      y.hasContents = isInteger(y.type) || y.type == DType::Bool;
      if (y.hasContents)
        y.ints.assign(size_t(count), Dim(ctx.attrs.i("value", 0)));
    }
  }
  return needs ? askForContents(ctx, 0) : InferStatus::Ok;
}

namespace {

// The count of range(start, limit, delta) and, where few, its elements.
InferStatus integerRange(InferContext &ctx, Dim start, Dim limit, Dim delta) {
  TensorInfo &y = ctx.out[0];
  if (delta.is(0))
    return ctx.fail("the range's delta is 0");
  if (!delta.isConst() || delta.value() == INT64_MIN)
    return InferStatus::Ok;
  bool isUp = delta.value() > 0;
  Dim span = isUp ? limit - start : start - limit;
  y.dims = {ceilDiv(clampToZero(span), isUp ? delta : Dim(-delta.value()))};
  int64_t count = y.dims[0].isConst() ? y.dims[0].value() : -1;
  if (count < 0 || count > kMaxKnownElements)
    return InferStatus::Ok;
  y.hasContents = true;
  for (int64_t k = 0; k < count; ++k)
    y.ints.push_back(start + delta * Dim(k));
  return InferStatus::Ok;
}

InferStatus floatRange(InferContext &ctx, double start, double limit, double delta) {
  TensorInfo &y = ctx.out[0];
  // The difference is taken in the element type, as onnxruntime does.
  double span = y.type == DType::F64 ? limit - start : double(float(limit - start));
  double count = std::ceil(span / delta);
  if (!(std::fabs(count) < 0x1p53))
    return ctx.fail("the range from " + std::to_string(start) + " to " + std::to_string(limit) + " by " +
                    std::to_string(delta) + " has no finite length");
  y.dims = {Dim(std::max<int64_t>(0, int64_t(count)))};
  return InferStatus::Ok;
}

} // namespace

InferStatus inferRange(InferContext &ctx) {
  if (!checkCounts(ctx, 3, 3, 1, 1) || !checkType(ctx, 1, ctx.in[0].type) ||
      !checkType(ctx, 2, ctx.in[0].type))
    return InferStatus::Error;
  DType type = ctx.in[0].type;
  if (!isFloat(type) && !isInteger(type))
    return ctx.fail("a range of " + std::string(dtypeName(type)) + " is not defined");
  ctx.out[0] = TensorInfo::make(type, {Dim()});
  for (int i = 0; i < 3; ++i) {
    size_t count =
        isFloat(type) ? (ctx.floats(i) ? ctx.floats(i)->size() : 0) : (ctx.ints(i) ? ctx.ints(i)->size() : 0);
    if (!ctx.in[i].hasContents || (count == 1 && !isFloat(type) && scalarInt(ctx, i).isUnknown()))
      return askForContents(ctx, i);
    if (count != 1)
      return ctx.fail("operand " + std::to_string(i) + " must be a scalar, found " + ctx.in[i].str());
  }
  if (isFloat(type))
    return floatRange(ctx, (*ctx.floats(0))[0], (*ctx.floats(1))[0], (*ctx.floats(2))[0]);
  return integerRange(ctx, scalarInt(ctx, 0), scalarInt(ctx, 1), scalarInt(ctx, 2));
}

InferStatus inferEyeLike(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  DType type = typeAttr(ctx, "dtype", x.type);
  if (type == DType::Undefined)
    return InferStatus::Error;
  if (x.hasRank && x.rank() != 2)
    return ctx.fail("expected a tensor of 2 dims, found " + x.str());
  ctx.out[0] = TensorInfo::make(type, x.hasRank ? x.dims : std::vector<Dim>(2));
  return InferStatus::Ok;
}

InferStatus inferOneHot(InferContext &ctx) {
  if (!checkCounts(ctx, 3, 3, 1, 1))
    return InferStatus::Error;
  const TensorInfo &indices = ctx.in[0], &depth = ctx.in[1], &values = ctx.in[2];
  TensorInfo &y = ctx.out[0];
  y.type = values.type;
  if (int64_t count = knownElements(values); count >= 0 && (count != 2 || values.rank() != 1))
    return ctx.fail("values must be [off, on], found " + values.str());
  if (!indices.hasRank)
    return InferStatus::Ok;
  std::optional<int> axis = checkAxis(ctx, ctx.attrs.i("axis", -1), indices.rank() + 1);
  if (!axis || !checkRank(ctx, indices.dims.size() + 1))
    return InferStatus::Error;
  y = TensorInfo::make(values.type, indices.dims);
  // The depth may come as a floating-point number.
  Dim size = scalarInt(ctx, 1);
  const std::vector<double> *real = ctx.floats(1);
  if (real && (real->size() != 1 || !(std::fabs((*real)[0]) < 0x1p53)))
    return ctx.fail("depth must be one number below 2^53 in size, found " + depth.str());
  if (real)
    size = Dim(int64_t((*real)[0]));
  const std::vector<Dim> *known = ctx.ints(1);
  if (known && known->size() != 1)
    return ctx.fail("depth must be one number, found " + depth.str());
  if (known)
    size = known->front();
  if (depth.hasContents && size.isConst() && size.value() < 0)
    return ctx.fail("depth is " + size.str() + ", expected 0 or more");
  y.dims.insert(y.dims.begin() + *axis, size);
  return size.isUnknown() ? askForContents(ctx, 1) : InferStatus::Ok;
}

} // namespace dspark::index_ops
