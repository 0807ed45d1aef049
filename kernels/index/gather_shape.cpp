// Gather and scatter. Indices known here are checked here; others meet the kernels, which define what an
// index outside the tensor does (gathers read zeros, scatters skip).
#include "kernels/common/infer.h"
#include "kernels/index/index.h"

namespace dspark::index_ops {
namespace {

bool checkReduction(InferContext &ctx) {
  std::string_view reduction = ctx.attrs.s("reduction", "none");
  for (std::string_view known : {"none", "add", "mul", "max", "min"})
    if (reduction == known)
      return true;
  ctx.error = "reduction is \"" + std::string(reduction) + "\", expected none, add, mul, max or min";
  return false;
}

bool checkIndices(InferContext &ctx, size_t i) { return checkIntegers(ctx, i); }

// The result has operand 0's type and dims.
void likeOperand0(InferContext &ctx) {
  ctx.out[0].type = ctx.in[0].type;
  ctx.out[0].hasRank = ctx.in[0].hasRank;
  ctx.out[0].dims = ctx.in[0].dims;
}

// Known indices, each inside [-dim, dim); false with an error otherwise. `indices` stays empty if not known.
bool knownIndices(InferContext &ctx, Dim dim, std::vector<int64_t> &indices) {
  std::optional<std::vector<int64_t>> values = constInts(ctx, 1);
  if (!values || !contentsFit(ctx.in[1]) || !dim.isConst())
    return true;
  for (int64_t &index : *values) {
    if (index < -dim.value() || index >= dim.value()) {
      ctx.error = "index " + std::to_string(index) + " is outside [" + std::to_string(-dim.value()) + ", " +
                  dim.str() + ")";
      return false;
    }
    index += index < 0 ? dim.value() : 0;
  }
  indices = std::move(*values);
  return true;
}

} // namespace

InferStatus inferGather(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1) || !checkIndices(ctx, 1))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0], &indices = ctx.in[1];
  TensorInfo &y = ctx.out[0];
  y.type = x.type;
  if (!x.hasRank)
    return InferStatus::Ok;
  std::optional<int> axis = checkAxis(ctx, ctx.attrs.i("axis", 0), x.rank());
  if (!axis)
    return InferStatus::Error;
  if (!indices.hasRank)
    return InferStatus::Ok;
  std::vector<Dim> dims(x.dims.begin(), x.dims.begin() + *axis);
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), x.dims.begin() + *axis + 1, x.dims.end());
  if (!checkRank(ctx, dims.size()))
    return InferStatus::Error;
  y = TensorInfo::make(x.type, std::move(dims));
  std::vector<int64_t> at;
  if (!knownIndices(ctx, x.dims[*axis], at))
    return InferStatus::Error;
  // Only small operands have contents to map; their dims' products cannot overflow.
  int64_t count = knownElements(y), source = knownElements(x);
  if (at.empty() || count <= 0 || !x.hasContents || source <= 0 || source > kMaxKnownElements)
    return InferStatus::Ok;
  // y is [outer, indices, inner].
  int64_t inner = 1;
  for (int i = *axis + 1; i < x.rank(); ++i)
    inner *= x.dims[i].value();
  int64_t n = int64_t(at.size()), whole = x.dims[*axis].value() * inner;
  mapContents(x, y, [&](int64_t k) {
    return k / (n * inner) * whole + at[size_t(k / inner % n)] * inner + k % inner;
  });
  return InferStatus::Ok;
}

InferStatus inferGatherElements(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1) || !checkIndices(ctx, 1))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0], &indices = ctx.in[1];
  TensorInfo &y = ctx.out[0];
  y.type = x.type;
  y.hasRank = indices.hasRank;
  y.dims = indices.dims;
  if (!x.hasRank || !indices.hasRank)
    return InferStatus::Ok;
  std::optional<int> axis = checkAxis(ctx, ctx.attrs.i("axis", 0), x.rank());
  if (!axis)
    return InferStatus::Error;
  if (x.rank() != indices.rank())
    return ctx.fail("indices " + indices.str() + " must have the rank of " + x.str());
  for (int i = 0; i < x.rank(); ++i)
    if (i != *axis && x.dims[i].isConst() && indices.dims[i].isConst() &&
        indices.dims[i].value() > x.dims[i].value())
      return ctx.fail("dim " + std::to_string(i) + " of indices " + indices.str() + " exceeds that of " +
                      x.str());
  std::vector<int64_t> at;
  return knownIndices(ctx, x.dims[*axis], at) ? InferStatus::Ok : InferStatus::Error;
}

InferStatus inferGatherNd(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1) || !checkIndices(ctx, 1))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0], &indices = ctx.in[1];
  TensorInfo &y = ctx.out[0];
  y.type = x.type;
  if (!x.hasRank || !indices.hasRank)
    return InferStatus::Ok;
  int64_t batch = ctx.attrs.i("batch_dims", 0);
  if (indices.rank() < 1 || batch < 0 || batch >= indices.rank() || batch > x.rank())
    return ctx.fail("batch_dims is " + std::to_string(batch) + " for data " + x.str() + " and indices " +
                    indices.str());
  for (size_t i = 0; i < size_t(batch); ++i)
    if (!mergeDims(x.dims[i], indices.dims[i]))
      return ctx.fail("batch dim " + std::to_string(i) + " differs between " + x.str() + " and " +
                      indices.str());
  // The result's rank needs the number of coordinates in each index.
  Dim depth = indices.dims.back();
  if (!depth.isConst())
    return InferStatus::Ok;
  if (depth.value() < 1 || depth.value() > x.rank() - batch)
    return ctx.fail("the last dim of indices " + indices.str() + " must be 1 to " +
                    std::to_string(x.rank() - batch));
  std::vector<Dim> dims(indices.dims.begin(), indices.dims.end() - 1);
  dims.insert(dims.end(), x.dims.begin() + batch + depth.value(), x.dims.end());
  if (!checkRank(ctx, dims.size()))
    return InferStatus::Error;
  y = TensorInfo::make(x.type, std::move(dims));
  return InferStatus::Ok;
}

InferStatus inferScatterElements(InferContext &ctx) {
  if (!checkCounts(ctx, 3, 3, 1, 1) || !checkIndices(ctx, 1) || !checkType(ctx, 2, ctx.in[0].type) ||
      !checkReduction(ctx))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0], &indices = ctx.in[1], &updates = ctx.in[2];
  likeOperand0(ctx);
  if (!x.hasRank)
    return InferStatus::Ok;
  std::optional<int> axis = checkAxis(ctx, ctx.attrs.i("axis", 0), x.rank());
  if (!axis)
    return InferStatus::Error;
  for (const TensorInfo *info : {&indices, &updates})
    if (info->hasRank && info->rank() != x.rank())
      return ctx.fail("indices " + indices.str() + " and updates " + updates.str() +
                      " must have the rank of " + x.str());
  for (int i = 0; i < x.rank(); ++i) {
    if (indices.hasRank && updates.hasRank && !mergeDims(indices.dims[i], updates.dims[i]))
      return ctx.fail("indices " + indices.str() + " and updates " + updates.str() + " must have equal dims");
    if (i != *axis && indices.hasRank && indices.dims[i].isConst() && x.dims[i].isConst() &&
        indices.dims[i].value() > x.dims[i].value())
      return ctx.fail("dim " + std::to_string(i) + " of indices " + indices.str() + " exceeds that of " +
                      x.str());
  }
  std::vector<int64_t> at;
  return knownIndices(ctx, x.dims[*axis], at) ? InferStatus::Ok : InferStatus::Error;
}

InferStatus inferScatterNd(InferContext &ctx) {
  if (!checkCounts(ctx, 3, 3, 1, 1) || !checkIndices(ctx, 1) || !checkType(ctx, 2, ctx.in[0].type) ||
      !checkReduction(ctx))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0], &indices = ctx.in[1], &updates = ctx.in[2];
  likeOperand0(ctx);
  if (!x.hasRank || !indices.hasRank)
    return InferStatus::Ok;
  if (indices.rank() < 1)
    return ctx.fail("indices must have 1 or more dims, found " + indices.str());
  Dim depth = indices.dims.back();
  if (!depth.isConst())
    return InferStatus::Ok;
  if (depth.value() < 1 || depth.value() > x.rank())
    return ctx.fail("the last dim of indices " + indices.str() + " must be 1 to " + std::to_string(x.rank()));
  if (!updates.hasRank)
    return InferStatus::Ok;
  std::vector<Dim> expected(indices.dims.begin(), indices.dims.end() - 1);
  expected.insert(expected.end(), x.dims.begin() + depth.value(), x.dims.end());
  bool fits = expected.size() == updates.dims.size();
  for (size_t i = 0; fits && i < expected.size(); ++i)
    fits = mergeDims(expected[i], updates.dims[i]).has_value();
  return fits ? InferStatus::Ok
              : ctx.fail("updates are " + updates.str() + ", expected " +
                         TensorInfo::make(x.type, std::move(expected)).str());
}

InferStatus inferTensorScatter(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 3, 1, 1) || !checkType(ctx, 1, ctx.in[0].type) || !checkType(ctx, 2, DType::I64))
    return InferStatus::Error;
  std::string_view mode = ctx.attrs.s("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return ctx.fail("mode is \"" + std::string(mode) + "\", expected linear or circular");
  const TensorInfo &cache = ctx.in[0], &update = ctx.in[1];
  likeOperand0(ctx);
  if (!cache.hasRank)
    return InferStatus::Ok;
  std::optional<int> axis = checkAxis(ctx, ctx.attrs.i("axis", -2), cache.rank());
  if (!axis)
    return InferStatus::Error;
  if (*axis == 0)
    return ctx.fail("axis 0 of " + cache.str() + " is the batch and cannot be written along");
  if (update.hasRank && update.rank() != cache.rank())
    return ctx.fail("update " + update.str() + " must have the rank of " + cache.str());
  for (int i = 0; i < update.rank(); ++i) {
    bool isLarger =
        update.dims[i].isConst() && cache.dims[i].isConst() && update.dims[i].value() > cache.dims[i].value();
    if (i == *axis ? isLarger : !mergeDims(update.dims[i], cache.dims[i]))
      return ctx.fail("update " + update.str() + " does not fit " + cache.str() + " in dim " +
                      std::to_string(i));
  }
  if (ctx.has(2) && ctx.in[2].hasRank &&
      (ctx.in[2].rank() != 1 || !mergeDims(ctx.in[2].dims[0], cache.dims[0])))
    return ctx.fail("write_indices are " + ctx.in[2].str() + ", expected " + cache.dims[0].str() +
                    " entries");
  return InferStatus::Ok;
}

} // namespace dspark::index_ops
