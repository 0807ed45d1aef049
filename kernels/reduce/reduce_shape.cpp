#include "kernels/common/families.h"
#include "kernels/common/infer.h"
#include "kernels/reduce/reduce.h"
#include <algorithm>

namespace dspark {

std::span<const OpEntry> reduceOps() {
  using namespace reduce_ops;
  static const OpEntry ops[] = {
      {.name = "reduce", .infer = inferReduce},
      {.name = "arg_reduce", .infer = inferArgReduce},
      {.name = "cumulative", .infer = inferCumulative},
  };
  return ops;
}

namespace reduce_ops {
namespace {

template <typename Names> bool checkKind(InferContext &ctx, const Names &names, size_t &kind) {
  std::string_view given = ctx.attrs.s("kind", "");
  kind = size_t(std::find(std::begin(names), std::end(names), given) - std::begin(names));
  if (kind == std::size(names))
    ctx.error = "kind is \"" + std::string(given) + "\", which is none of this operator's";
  return ctx.error.empty();
}

// Contents of a reduction of a few integers: sum, prod, max and min.
void reduceContents(const TensorInfo &x, TensorInfo &y, const std::vector<bool> &reduced, ReduceKind kind) {
  int64_t count = knownElements(x), results = knownElements(y);
  bool isExact = kind == ReduceKind::Sum || kind == ReduceKind::Prod || kind == ReduceKind::Max ||
                 kind == ReduceKind::Min;
  if (!isExact || isFloat(x.type) || !contentsFit(x) || results < 0 || results > kMaxKnownElements)
    return;
  bool isOrder = kind == ReduceKind::Max || kind == ReduceKind::Min;
  if (isOrder && count == 0)
    return;
  std::vector<int64_t> strides = stridesOf(x.dims);
  std::vector<bool> seen(size_t(results), false);
  y.hasContents = true;
  y.ints.assign(size_t(results), Dim(kind == ReduceKind::Prod ? 1 : 0));
  for (int64_t k = 0; k < count; ++k) {
    int64_t at = 0;
    for (size_t i = 0; i < x.dims.size(); ++i)
      if (!reduced[i])
        at = at * x.dims[i].value() + k / strides[i] % x.dims[i].value();
    Dim &sum = y.ints[size_t(at)];
    if (isOrder && !seen[size_t(at)])
      sum = x.ints[size_t(k)];
    else if (isOrder)
      sum = kind == ReduceKind::Max ? max(sum, x.ints[size_t(k)]) : min(sum, x.ints[size_t(k)]);
    else
      sum = kind == ReduceKind::Sum ? sum + x.ints[size_t(k)] : sum * x.ints[size_t(k)];
    seen[size_t(at)] = true;
  }
}

} // namespace

InferStatus inferReduce(InferContext &ctx) {
  size_t kind;
  if (!checkCounts(ctx, 1, 2, 1, 1) || !checkIntegers(ctx, 1) || !checkKind(ctx, kReduceKinds, kind))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  TensorInfo &y = ctx.out[0];
  bool keep = ctx.attrs.i("keepdims", 1) != 0, noop = ctx.attrs.i("noop_with_empty_axes", 0) != 0;
  y.type = x.type;
  std::span<const int64_t> listed = ctx.attrs.ints("axes");
  std::vector<int64_t> axes(listed.begin(), listed.end());
  if (ctx.has(1)) {
    std::optional<std::vector<int64_t>> values = constInts(ctx, 1);
    if (!values) {
      if (keep && x.hasRank)
        y = TensorInfo::make(x.type, std::vector<Dim>(x.dims.size()));
      return askForContents(ctx, 1);
    }
    axes = *values;
  }
  if (!x.hasRank)
    return InferStatus::Ok;
  std::vector<bool> reduced(x.dims.size(), axes.empty() && !noop);
  for (int64_t axis : axes) {
    std::optional<int> normal = checkAxis(ctx, axis, x.rank());
    if (!normal)
      return InferStatus::Error;
    reduced[*normal] = true;
  }
  std::vector<Dim> dims;
  for (size_t i = 0; i < x.dims.size(); ++i)
    if (!reduced[i] || keep)
      dims.push_back(reduced[i] ? Dim(1) : x.dims[i]);
  y = TensorInfo::make(x.type, std::move(dims));
  reduceContents(x, y, reduced, ReduceKind(kind));
  return InferStatus::Ok;
}

InferStatus inferArgReduce(InferContext &ctx) {
  constexpr std::string_view kKinds[] = {"argmax", "argmin"};
  size_t kind;
  if (!checkCounts(ctx, 1, 1, 1, 1) || !checkKind(ctx, kKinds, kind))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  TensorInfo &y = ctx.out[0];
  y.type = DType::I64;
  if (!x.hasRank)
    return InferStatus::Ok;
  std::optional<int> axis = checkAxis(ctx, ctx.attrs.i("axis", 0), x.rank());
  if (!axis)
    return InferStatus::Error;
  if (x.dims[*axis].is(0))
    return ctx.fail("axis " + std::to_string(*axis) + " of " + x.str() + " has no elements to compare");
  y = TensorInfo::make(DType::I64, x.dims);
  if (ctx.attrs.i("keepdims", 1) != 0)
    y.dims[*axis] = Dim(1);
  else
    y.dims.erase(y.dims.begin() + *axis);
  return InferStatus::Ok;
}

InferStatus inferCumulative(InferContext &ctx) {
  constexpr std::string_view kKinds[] = {"sum", "prod"};
  size_t kind;
  if (!checkCounts(ctx, 2, 2, 1, 1) || !checkIntegers(ctx, 1) || !checkKind(ctx, kKinds, kind))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  ctx.out[0].type = x.type;
  ctx.out[0].hasRank = x.hasRank;
  ctx.out[0].dims = x.dims;
  if (int64_t count = knownElements(ctx.in[1]); count >= 0 && count != 1)
    return ctx.fail("axis must have one element, found " + ctx.in[1].str());
  // The axis decides nothing about the result's dims, but kernels cannot refuse one that is out of range.
  Dim axis = scalarInt(ctx, 1);
  if (axis.isUnknown() || axis.isSymbolic())
    return askForContents(ctx, 1);
  return !x.hasRank || checkAxis(ctx, axis.value(), x.rank()) ? InferStatus::Ok : InferStatus::Error;
}

} // namespace reduce_ops
} // namespace dspark
