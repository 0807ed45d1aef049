// Views (the same bytes under other dims) and the operators that ask a tensor for its dims.
#include "kernels/common/infer.h"
#include "kernels/movement/movement.h"
#include <algorithm>

namespace dspark::movement {
namespace {

// The operand's elements, in the same order, under `dims`.
InferStatus viewAs(InferContext &ctx, std::vector<Dim> dims) {
  if (!checkRank(ctx, dims.size()))
    return InferStatus::Error;
  ctx.out[0] = TensorInfo::make(ctx.in[0].type, std::move(dims));
  mapContents(ctx.in[0], ctx.out[0], [](int64_t k) { return k; });
  return InferStatus::Ok;
}

// The axes of squeeze and unsqueeze, as flags over [0, rank): attribute `axes` or operand 1.
std::optional<std::vector<bool>> axisFlags(InferContext &ctx, std::span<const int64_t> axes, size_t rank) {
  std::vector<bool> flags(rank, false);
  for (int64_t axis : axes) {
    std::optional<int> normal = checkAxis(ctx, axis, int(rank));
    if (!normal)
      return std::nullopt;
    if (flags[*normal]) {
      ctx.error = "axis " + std::to_string(axis) + " is given twice";
      return std::nullopt;
    }
    flags[*normal] = true;
  }
  return flags;
}

// Entries 0 of the shape copy the operand's dim, so it cancels against the same dim of the operand even where
// it is unknown; what is left decides the entry -1.
Dim inferredDim(std::span<const Dim> from, std::span<const Dim> target, const std::vector<bool> &copied) {
  std::vector<Dim> above, below;
  for (size_t i = 0; i < from.size(); ++i)
    if (i >= copied.size() || !copied[i])
      above.push_back(from[i]);
  for (size_t i = 0; i < target.size(); ++i)
    if (!copied[i] && !target[i].is(-1))
      below.push_back(target[i]);
  return exactQuotient(above, below);
}

InferStatus reshapeMismatch(InferContext &ctx) {
  return ctx.fail("cannot reshape " + ctx.in[0].str() + " to " + ctx.out[0].str() +
                  ": the numbers of elements differ");
}

// The result's dims for known contents of the shape operand.
InferStatus reshapeTo(InferContext &ctx, std::vector<Dim> target) {
  const TensorInfo &x = ctx.in[0];
  bool allowZero = ctx.attrs.i("allowzero", 0) != 0, needs = false;
  std::vector<bool> copied(target.size(), false);
  int wild = -1;
  for (size_t i = 0; i < target.size(); ++i) {
    Dim &dim = target[i];
    if (dim.is(-1)) {
      if (wild >= 0)
        return ctx.fail("the shape has more than one -1");
      wild = int(i);
    } else if (dim.is(0) && !allowZero) {
      if (x.hasRank && i >= x.dims.size())
        return ctx.fail("entry " + std::to_string(i) + " of the shape is 0 but " + x.str() +
                        " has no such dim to copy");
      copied[i] = x.hasRank;
      dim = x.hasRank ? x.dims[i] : Dim();
    } else if (dim.isConst() && dim.value() < 0) {
      return ctx.fail("entry " + std::to_string(i) + " of the shape is " + dim.str() +
                      ", expected -1 or more");
    } else {
      needs |= dim.isUnknown();
    }
  }
  if (wild >= 0) {
    bool isKnown = x.hasRank && !needs;
    Dim dim = isKnown ? inferredDim(x.dims, target, copied) : Dim();
    int64_t total = knownElements(x);
    Dim rest(1);
    for (size_t i = 0; i < target.size(); ++i)
      if (int(i) != wild)
        rest = rest * target[i];
    if (total >= 0 && rest.isConst() && (rest.is(0) || total % rest.value() != 0))
      return ctx.fail("cannot reshape " + x.str() + ": its " + std::to_string(total) +
                      " elements do not divide by " + rest.str());
    // Where a copied dim is 0, anything cancels against it; the numbers decide.
    target[wild] = total >= 0 && rest.isConst() ? Dim(total / rest.value()) : dim;
  }
  InferStatus status = viewAs(ctx, std::move(target));
  if (status != InferStatus::Ok)
    return status;
  int64_t before = knownElements(x), after = knownElements(ctx.out[0]);
  if (before >= 0 && after >= 0 && before != after)
    return reshapeMismatch(ctx);
  return needs ? askForContents(ctx, 1) : InferStatus::Ok;
}

} // namespace

InferStatus inferReshape(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1) || !checkIntegers(ctx, 1))
    return InferStatus::Error;
  const TensorInfo &shape = ctx.in[1];
  if (const std::vector<Dim> *target = ctx.ints(1))
    return checkRank(ctx, target->size()) ? reshapeTo(ctx, *target) : InferStatus::Error;
  ctx.out[0].type = ctx.in[0].type;
  if (shape.hasRank && shape.rank() == 1 && shape.dims[0].isConst() && shape.dims[0].value() >= 0) {
    if (!checkRank(ctx, size_t(shape.dims[0].value())))
      return InferStatus::Error;
    ctx.out[0] = TensorInfo::make(ctx.in[0].type, std::vector<Dim>(size_t(shape.dims[0].value())));
  }
  return askForContents(ctx, 1);
}

InferStatus inferSqueeze(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 2, 1, 1) || !checkIntegers(ctx, 1))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  ctx.out[0].type = x.type;
  std::vector<int64_t> axes(ctx.attrs.ints("axes").begin(), ctx.attrs.ints("axes").end());
  bool given = ctx.has(1) || ctx.attrs.has("axes");
  if (ctx.has(1)) {
    std::optional<std::vector<int64_t>> values = constInts(ctx, 1);
    if (!values)
      return askForContents(ctx, 1);
    axes = *values;
  }
  if (!x.hasRank)
    return InferStatus::Ok;
  std::optional<std::vector<bool>> flags = axisFlags(ctx, axes, x.dims.size());
  if (!flags)
    return InferStatus::Error;
  std::vector<Dim> dims;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    // Without axes every dim that is 1 goes: the rank stays open until all dims are numbers.
    if (!given && !x.dims[i].isConst())
      return InferStatus::Ok;
    if (given && (*flags)[i] && x.dims[i].isConst() && !x.dims[i].is(1))
      return ctx.fail("cannot squeeze axis " + std::to_string(i) + " of " + x.str() + ": expected 1, found " +
                      x.dims[i].str());
    if (given ? !(*flags)[i] : !x.dims[i].is(1))
      dims.push_back(x.dims[i]);
  }
  return viewAs(ctx, std::move(dims));
}

InferStatus inferUnsqueeze(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 2, 1, 1) || !checkIntegers(ctx, 1))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  ctx.out[0].type = x.type;
  std::vector<int64_t> axes(ctx.attrs.ints("axes").begin(), ctx.attrs.ints("axes").end());
  if (ctx.has(1)) {
    std::optional<std::vector<int64_t>> values = constInts(ctx, 1);
    if (!values)
      return askForContents(ctx, 1);
    axes = *values;
  }
  if (!x.hasRank)
    return InferStatus::Ok;
  size_t rank = x.dims.size() + axes.size();
  if (!checkRank(ctx, rank))
    return InferStatus::Error;
  std::optional<std::vector<bool>> flags = axisFlags(ctx, axes, rank);
  if (!flags)
    return InferStatus::Error;
  std::vector<Dim> dims;
  for (size_t i = 0, from = 0; i < rank; ++i)
    dims.push_back((*flags)[i] ? Dim(1) : x.dims[from++]);
  return viewAs(ctx, std::move(dims));
}

InferStatus inferFlatten(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  ctx.out[0] = TensorInfo::make(x.type, {Dim(), Dim()});
  if (!x.hasRank)
    return InferStatus::Ok;
  int64_t axis = ctx.attrs.i("axis", 1), rank = x.rank();
  if (axis < -rank || axis > rank)
    return ctx.fail("axis " + std::to_string(axis) + " is outside [" + std::to_string(-rank) + ", " +
                    std::to_string(rank) + "]");
  size_t split = size_t(axis < 0 ? axis + rank : axis);
  return viewAs(ctx, {dimProduct(x.dims, 0, split), dimProduct(x.dims, split, x.dims.size())});
}

InferStatus inferIdentity(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1))
    return InferStatus::Error;
  ctx.out[0] = ctx.in[0];
  return InferStatus::Ok;
}

InferStatus inferShape(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  ctx.out[0] = TensorInfo::make(DType::I64, {Dim()});
  if (!x.hasRank)
    return InferStatus::Ok;
  int64_t rank = x.rank();
  auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  int64_t start = clamp(ctx.attrs.i("start", 0)), end = clamp(ctx.attrs.i("end", rank));
  end = std::max(start, end);
  ctx.out[0].dims = {Dim(end - start)};
  ctx.out[0].hasContents = true;
  ctx.out[0].ints.assign(x.dims.begin() + start, x.dims.begin() + end);
  return InferStatus::Ok;
}

InferStatus inferSize(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1))
    return InferStatus::Error;
  ctx.out[0] = TensorInfo::make(DType::I64, {});
  ctx.out[0].hasContents = ctx.in[0].hasRank;
  if (ctx.in[0].hasRank)
    ctx.out[0].ints = {ctx.in[0].elements()};
  return InferStatus::Ok;
}

} // namespace dspark::movement
