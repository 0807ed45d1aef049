// Operators that pick elements by value. The dims of nonzero, unique and compress follow from the data: the
// kernel writes them, and the dims here are upper bounds.
#include "kernels/common/infer.h"
#include "kernels/index/index.h"
#include <algorithm>

namespace dspark::index_ops {

InferStatus inferTopK(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 2) || !checkType(ctx, 1, DType::I64))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  for (size_t i = 0; i < ctx.out.size(); ++i)
    ctx.out[i].type = i == 0 ? x.type : DType::I64;
  if (!x.hasRank)
    return InferStatus::Ok;
  std::optional<int> axis = checkAxis(ctx, ctx.attrs.i("axis", -1), x.rank());
  if (!axis)
    return InferStatus::Error;
  Dim k = scalarInt(ctx, 1), dim = x.dims[*axis];
  if (ctx.ints(1) && ctx.ints(1)->size() != 1)
    return ctx.fail("k must have one element, found " + ctx.in[1].str());
  if (k.isConst() && (k.value() < 0 || (dim.isConst() && k.value() > dim.value())))
    return ctx.fail("k is " + k.str() + ", expected 0 to " + dim.str());
  for (TensorInfo &y : ctx.out) {
    y = TensorInfo::make(y.type, x.dims);
    y.dims[*axis] = k;
  }
  return k.isUnknown() ? askForContents(ctx, 1) : InferStatus::Ok;
}

InferStatus inferNonZero(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  TensorInfo &y = ctx.out[0] = TensorInfo::make(DType::I64, {Dim(), Dim()});
  ctx.dimsFromKernel = true;
  if (!x.hasRank)
    return InferStatus::Ok;
  // A scalar counts as one element of one dim, as onnxruntime has it.
  int64_t rank = std::max(1, x.rank()), count = knownElements(x);
  y.dims = {Dim(rank), x.elements()};
  if (count < 0 || count > kMaxKnownElements || !contentsFit(x))
    return InferStatus::Ok;
  std::vector<int64_t> found;
  for (int64_t k = 0; k < count; ++k) {
    bool real = isFloat(x.type);
    if (!real && !x.ints[k].isConst())
      return InferStatus::Ok;
    if (real ? x.floats[k] != 0 : x.ints[k].value() != 0)
      found.push_back(k);
  }
  ctx.dimsFromKernel = false;
  int64_t n = int64_t(found.size());
  y.dims[1] = Dim(n);
  if (n * rank > kMaxKnownElements)
    return InferStatus::Ok;
  std::vector<int64_t> strides = x.rank() == 0 ? std::vector<int64_t>{1} : stridesOf(x.dims);
  y.hasContents = true;
  for (int64_t i = 0; i < rank; ++i)
    for (int64_t k : found)
      y.ints.push_back(Dim(x.rank() == 0 ? 0 : k / strides[i] % x.dims[i].value()));
  return InferStatus::Ok;
}

InferStatus inferUnique(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 4))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  ctx.dimsFromKernel = true;
  for (size_t i = 0; i < ctx.out.size(); ++i)
    ctx.out[i] = TensorInfo::make(i == 0 ? x.type : DType::I64, {Dim()});
  if (!x.hasRank && ctx.attrs.has("axis")) {
    ctx.out[0].hasRank = false;
    ctx.out[0].dims.clear();
  }
  if (!x.hasRank)
    return InferStatus::Ok;
  Dim count = x.elements();
  ctx.out[0].dims = {count};
  if (ctx.attrs.has("axis")) {
    std::optional<int> axis = checkAxis(ctx, ctx.attrs.i("axis", 0), x.rank());
    if (!axis)
      return InferStatus::Error;
    count = x.dims[*axis];
    ctx.out[0].dims = x.dims;
  }
  for (size_t i = 1; i < ctx.out.size(); ++i)
    ctx.out[i].dims = {count};
  return InferStatus::Ok;
}

InferStatus inferCompress(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1) || !checkType(ctx, 1, DType::Bool))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0], &condition = ctx.in[1];
  TensorInfo &y = ctx.out[0];
  y.type = x.type;
  ctx.dimsFromKernel = true;
  if (condition.hasRank && condition.rank() != 1)
    return ctx.fail("the condition must have 1 dim, found " + condition.str());
  if (!x.hasRank)
    return InferStatus::Ok;
  std::optional<int> axis = 0;
  y = TensorInfo::make(x.type, {x.elements()});
  if (ctx.attrs.has("axis")) {
    axis = checkAxis(ctx, ctx.attrs.i("axis", 0), x.rank());
    if (!axis)
      return InferStatus::Error;
    y.dims = x.dims;
  }
  Dim whole = y.dims[*axis], length = condition.hasRank ? condition.dims[0] : Dim();
  if (length.isConst())
    y.dims[*axis] = min(whole, length);
  std::optional<std::vector<int64_t>> flags = constInts(ctx, 1);
  if (!flags || !whole.isConst())
    return InferStatus::Ok;
  int64_t limit = std::min(whole.value(), int64_t(flags->size()));
  y.dims[*axis] = Dim(std::count_if(flags->begin(), flags->begin() + std::max<int64_t>(limit, 0),
                                    [](int64_t flag) { return flag != 0; }));
  ctx.dimsFromKernel = false;
  return InferStatus::Ok;
}

} // namespace dspark::index_ops
