// Windows: slice, pad, and centre crop or pad.
#include "kernels/common/infer.h"
#include "kernels/movement/movement.h"
#include <algorithm>

namespace dspark::movement {
namespace {

// Values beyond this mean "to the end" in exported models (INT32_MAX, INT64_MAX).
constexpr int64_t kFarAway = INT32_MAX;

// start or end on an axis of size `dim`, counted from the front but not clamped yet. `isFromBack` tells that
// it was negative. Unknown where an expression's sign is.
Dim fromFront(Dim at, Dim dim, bool &isFromBack) {
  isFromBack = at.isConst() && at.value() < 0;
  if (isFromBack)
    return dim + at;
  return isNonNegative(at) ? at : Dim();
}

// The length of [start:end:step] on an axis of size dim, exact also for expressions:
// clamped to [0, dim], end - start is min(end, dim) - max(start, 0), which is the smallest of end - start,
// end - 0, dim - start and dim - 0; terms that cannot be the smallest are left out so that results stay
// short.
Dim forwardLength(Dim start, Dim end, Dim dim, int64_t step) {
  if (start.isConst() && start.value() < -kFarAway)
    start = Dim(0);
  bool startFromBack, endFromBack;
  Dim s = fromFront(start, dim, startFromBack), e = fromFront(end, dim, endFromBack);
  bool toTheEnd = (end.isConst() && end.value() >= kFarAway) || e.provablyEqual(dim);
  if (toTheEnd)
    e = dim;
  Dim length = e - s;
  if (!toTheEnd && !endFromBack)
    length = min(length, dim - s);
  if (startFromBack)
    length = min(length, toTheEnd || endFromBack ? e : min(e, dim));
  return ceilDiv(clampToZero(length), Dim(step));
}

// Likewise for a negative step, whose end is clamped to [-1, ..].
Dim backwardLength(Dim start, Dim end, Dim dim, int64_t step) {
  bool startFromBack, endFromBack;
  if (start.isConst() && start.value() >= kFarAway)
    start = Dim(-1);
  bool toTheFront = end.isConst() && end.value() < -kFarAway;
  Dim s = fromFront(start, dim, startFromBack);
  Dim e = toTheFront ? Dim(-1) : fromFront(end, dim, endFromBack);
  // Clamped to [0, dim - 1], where the last element (-1) needs no clamping.
  if (!start.is(-1))
    s = min(startFromBack ? max(s, Dim(0)) : s, dim - Dim(1));
  return ceilDiv(clampToZero(s - (toTheFront ? e : max(e, Dim(-1)))), Dim(-step));
}

Dim slicedDim(Dim start, Dim end, Dim dim, int64_t step) {
  if (!start.isConst() || !end.isConst() || !dim.isConst())
    return step > 0 ? forwardLength(start, end, dim, step) : backwardLength(start, end, dim, step);
  SliceRange range = sliceRange(start.value(), end.value(), dim.value(), step);
  return Dim(range.length);
}

// A list operand of slice: its contents, or `count` times `otherwise` where it is absent.
std::optional<std::vector<Dim>> listOperand(InferContext &ctx, size_t i, size_t count, Dim otherwise) {
  if (!ctx.has(i))
    return std::vector<Dim>(count, otherwise);
  const std::vector<Dim> *ints = ctx.ints(i);
  return ints ? std::optional(*ints) : std::nullopt;
}

} // namespace

SliceRange sliceRange(int64_t start, int64_t end, int64_t dim, int64_t step) {
  auto clamp = [&](int64_t at, int64_t low, int64_t high) {
    return std::max(low, std::min(at < 0 ? at + dim : at, high));
  };
  bool isForward = step > 0;
  int64_t low = isForward ? 0 : -1, high = isForward ? dim : dim - 1;
  // An end of -1 for a negative step is the last element as everywhere; "before the first" is anything <
  // -dim.
  int64_t first = clamp(start, low, high), last = clamp(end, low, high);
  if (!isForward)
    first = std::max<int64_t>(first, 0);
  uint64_t stride = isForward ? uint64_t(step) : 0 - uint64_t(step);
  int64_t span = isForward ? last - first : first - last;
  if (dim == 0 || span <= 0)
    return {0, step, 0};
  return {first, step, int64_t((uint64_t(span) - 1) / stride + 1)};
}

InferStatus inferSlice(InferContext &ctx) {
  if (!checkCounts(ctx, 3, 5, 1, 1))
    return InferStatus::Error;
  for (size_t i = 1; i < 5; ++i)
    if (!checkIntegers(ctx, i))
      return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  TensorInfo &y = ctx.out[0];
  y.type = x.type;
  if (!x.hasRank)
    return InferStatus::Ok;
  y = TensorInfo::make(x.type, std::vector<Dim>(x.dims.size()));

  // How many axes are cut is known even where starts' contents are not.
  size_t count = x.dims.size();
  if (ctx.in[1].rank() == 1 && ctx.in[1].dims[0].isConst())
    count = size_t(std::clamp<int64_t>(ctx.in[1].dims[0].value(), 0, x.rank()));
  if (ctx.ints(1))
    count = ctx.ints(1)->size();
  std::vector<int64_t> axes(count);
  for (size_t k = 0; k < count; ++k)
    axes[k] = int64_t(k);
  if (ctx.has(3)) {
    std::optional<std::vector<int64_t>> values = constInts(ctx, 3);
    if (!values)
      return askForContents(ctx, 3);
    axes = *values;
  }
  std::optional<std::vector<Dim>> lists[] = {listOperand(ctx, 1, count, Dim()),
                                             listOperand(ctx, 2, count, Dim()),
                                             listOperand(ctx, 4, count, Dim(1))};
  const int operands[] = {1, 2, 4};
  auto refuseEntries = [&](int operand, int64_t entries) {
    return ctx.fail("operand " + std::to_string(operand) + " has " + std::to_string(entries) +
                    " entries for " + std::to_string(axes.size()) + " axes");
  };
  for (int operand : operands) // the kernel reads them by the axis, whether or not a shape depends on them
    if (ctx.has(size_t(operand)))
      if (int64_t entries = knownElements(ctx.in[size_t(operand)]);
          entries >= 0 && entries != int64_t(axes.size()))
        return refuseEntries(operand, entries);
  y.dims = x.dims;
  int needed = 0;
  std::vector<bool> seen(x.dims.size(), false);
  bool areNumbers = true;
  std::vector<SliceRange> ranges(x.dims.size());
  for (size_t i = 0; i < x.dims.size(); ++i)
    ranges[i] = {0, 1, x.dims[i].isConst() ? x.dims[i].value() : 0};
  for (size_t k = 0; k < axes.size(); ++k) {
    std::optional<int> axis = checkAxis(ctx, axes[k], x.rank());
    if (!axis)
      return InferStatus::Error;
    if (seen[*axis])
      return ctx.fail("axis " + std::to_string(axes[k]) + " is given twice");
    seen[*axis] = true;
    Dim values[3];
    for (int j = 0; j < 3; ++j) {
      if (lists[j] && lists[j]->size() != axes.size())
        return refuseEntries(operands[j], int64_t(lists[j]->size()));
      values[j] = lists[j] ? (*lists[j])[k] : Dim();
      if (values[j].isUnknown())
        needed = operands[j];
    }
    if (values[2].is(0))
      return ctx.fail("step " + std::to_string(k) + " is 0");
    Dim dim = x.dims[*axis];
    bool isKnownStep = values[2].isConst() && values[2].value() != INT64_MIN;
    y.dims[*axis] = isKnownStep ? slicedDim(values[0], values[1], dim, values[2].value()) : Dim();
    if (values[0].isConst() && values[1].isConst() && isKnownStep && dim.isConst())
      ranges[*axis] = sliceRange(values[0].value(), values[1].value(), dim.value(), values[2].value());
    else
      areNumbers = false;
  }
  if (needed)
    return askForContents(ctx, needed);
  if (!areNumbers || !contentsFit(x) || knownElements(y) <= 0) {
    y.hasContents = areNumbers && contentsFit(x) && knownElements(y) == 0;
    return InferStatus::Ok;
  }
  std::vector<int64_t> from = stridesOf(x.dims), to = stridesOf(y.dims);
  mapContents(x, y, [&](int64_t k) {
    int64_t at = 0;
    for (size_t i = 0; i < ranges.size(); ++i)
      at += (ranges[i].start + k / to[i] % ranges[i].length * ranges[i].step) * from[i];
    return at;
  });
  return InferStatus::Ok;
}

InferStatus inferPad(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 4, 1, 1) || !checkIntegers(ctx, 1) || !checkIntegers(ctx, 3))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  TensorInfo &y = ctx.out[0];
  if (!checkType(ctx, 2, x.type))
    return InferStatus::Error;
  y.type = x.type;
  std::string_view mode = ctx.attrs.s("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    return ctx.fail("mode is \"" + std::string(mode) + "\", expected constant, reflect, edge or wrap");
  if (!x.hasRank)
    return InferStatus::Ok;
  y = TensorInfo::make(x.type, std::vector<Dim>(x.dims.size()));
  std::vector<int64_t> axes;
  if (ctx.has(3)) {
    std::optional<std::vector<int64_t>> values = constInts(ctx, 3);
    if (!values)
      return askForContents(ctx, 3);
    axes = *values;
  } else {
    for (int i = 0; i < x.rank(); ++i)
      axes.push_back(i);
  }
  y.dims = x.dims;
  std::vector<bool> seen(x.dims.size(), false);
  const std::vector<Dim> *pads = ctx.ints(1);
  if (pads && pads->size() != 2 * axes.size())
    return ctx.fail("pads has " + std::to_string(pads->size()) + " entries, expected " +
                    std::to_string(2 * axes.size()));
  bool needs = !pads;
  for (size_t k = 0; k < axes.size(); ++k) {
    std::optional<int> axis = checkAxis(ctx, axes[k], x.rank());
    if (!axis)
      return InferStatus::Error;
    if (seen[*axis])
      return ctx.fail("axis " + std::to_string(axes[k]) + " is given twice");
    seen[*axis] = true;
    Dim before = pads ? (*pads)[k] : Dim(), after = pads ? (*pads)[k + axes.size()] : Dim();
    needs |= before.isUnknown() || after.isUnknown();
    Dim dim = x.dims[*axis];
    y.dims[*axis] = dim + before + after;
    if (!before.isConst() || !after.isConst() || !dim.isConst())
      continue;
    // What negative pads leave must be there, and must not be empty where its elements are repeated.
    Dim kept = dim + min(before, Dim(0)) + min(after, Dim(0));
    if (!kept.isConst() || !y.dims[*axis].isConst() || kept.value() < 0)
      return ctx.fail("pads " + before.str() + " and " + after.str() + " do not fit dim " +
                      std::to_string(*axis) + " of " + x.str());
    if (kept.is(0) && !y.dims[*axis].is(0) && mode != "constant")
      return ctx.fail("mode " + std::string(mode) + " has nothing to repeat in dim " + std::to_string(*axis) +
                      " of " + x.str());
  }
  return needs ? askForContents(ctx, 1) : InferStatus::Ok;
}

InferStatus inferCenterCropPad(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1) || !checkIntegers(ctx, 1))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  TensorInfo &y = ctx.out[0];
  y.type = x.type;
  if (!x.hasRank)
    return InferStatus::Ok;
  y = TensorInfo::make(x.type, x.dims);
  std::vector<int64_t> axes(ctx.attrs.ints("axes").begin(), ctx.attrs.ints("axes").end());
  if (!ctx.attrs.has("axes"))
    for (int i = 0; i < x.rank(); ++i)
      axes.push_back(i);
  const std::vector<Dim> *shape = ctx.ints(1);
  if (shape && shape->size() != axes.size())
    return ctx.fail("the shape has " + std::to_string(shape->size()) + " entries for " +
                    std::to_string(axes.size()) + " axes");
  bool needs = !shape;
  std::vector<bool> seen(x.dims.size(), false);
  for (size_t k = 0; k < axes.size(); ++k) {
    std::optional<int> axis = checkAxis(ctx, axes[k], x.rank());
    if (!axis)
      return InferStatus::Error;
    if (seen[*axis])
      return ctx.fail("axis " + std::to_string(axes[k]) + " is given twice");
    seen[*axis] = true;
    Dim dim = shape ? (*shape)[k] : Dim();
    if (dim.isConst() && dim.value() < 0)
      return ctx.fail("entry " + std::to_string(k) + " of the shape is " + dim.str() +
                      ", expected 0 or more");
    needs |= dim.isUnknown();
    y.dims[*axis] = dim;
  }
  return needs ? askForContents(ctx, 1) : InferStatus::Ok;
}

} // namespace dspark::movement
