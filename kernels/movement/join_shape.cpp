// Operators that rearrange, join, cut and repeat whole dims.
#include "kernels/common/infer.h"
#include "kernels/movement/movement.h"
#include <algorithm>

namespace dspark::movement {

InferStatus inferTranspose(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 1, 1, 1))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  ctx.out[0].type = x.type;
  if (!x.hasRank)
    return InferStatus::Ok;
  std::span<const int64_t> given = ctx.attrs.ints("perm");
  std::vector<int64_t> perm(given.begin(), given.end());
  if (!ctx.attrs.has("perm"))
    for (int i = x.rank() - 1; i >= 0; --i)
      perm.push_back(i);
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool isPermutation = sorted.size() == x.dims.size();
  for (size_t i = 0; i < sorted.size(); ++i)
    isPermutation &= sorted[i] == int64_t(i);
  if (!isPermutation)
    return ctx.fail("perm is no permutation of the " + std::to_string(x.rank()) + " dims of " + x.str());
  std::vector<Dim> dims;
  for (int64_t axis : perm)
    dims.push_back(x.dims[size_t(axis)]);
  TensorInfo &y = ctx.out[0] = TensorInfo::make(x.type, std::move(dims));
  if (int64_t count = knownElements(y); count < 0 || count > kMaxKnownElements)
    return InferStatus::Ok;
  std::vector<int64_t> from = stridesOf(x.dims), to = stridesOf(y.dims);
  mapContents(x, y, [&](int64_t k) {
    int64_t at = 0;
    for (size_t i = 0; i < perm.size(); ++i)
      at += k / to[i] % y.dims[i].value() * from[size_t(perm[i])];
    return at;
  });
  return InferStatus::Ok;
}

namespace {

// Contents of a concatenation: runs of each operand, outer index by outer index.
void concatContents(InferContext &ctx, size_t axis) {
  TensorInfo &y = ctx.out[0];
  int64_t count = knownElements(y);
  if (count < 0 || count > kMaxKnownElements)
    return;
  for (const TensorInfo &x : ctx.in)
    if (!contentsFit(x))
      return;
  y.hasContents = true;
  if (count == 0) // the outer dims may still be huge
    return;
  int64_t outer = 1;
  for (size_t i = 0; i < axis; ++i)
    outer *= y.dims[i].value();
  for (int64_t o = 0; o < outer; ++o)
    for (const TensorInfo &x : ctx.in) {
      int64_t run = knownElements(x) / outer;
      if (isFloat(x.type))
        y.floats.insert(y.floats.end(), x.floats.begin() + o * run, x.floats.begin() + (o + 1) * run);
      else
        y.ints.insert(y.ints.end(), x.ints.begin() + o * run, x.ints.begin() + (o + 1) * run);
    }
}

} // namespace

InferStatus inferConcat(InferContext &ctx) {
  if (!checkCounts(ctx, 1, SIZE_MAX, 1, 1))
    return InferStatus::Error;
  TensorInfo &y = ctx.out[0];
  const TensorInfo *ranked = nullptr;
  for (size_t i = 0; i < ctx.in.size(); ++i) {
    if (!ctx.has(i))
      return ctx.fail("operand " + std::to_string(i) + " is missing");
    if (!checkType(ctx, i, ctx.in[0].type))
      return InferStatus::Error;
    if (ctx.in[i].hasRank)
      ranked = ranked ? ranked : &ctx.in[i];
  }
  y.type = ctx.in[0].type;
  if (!ranked)
    return InferStatus::Ok;
  std::optional<int> axis = checkAxis(ctx, ctx.attrs.i("axis", 0), ranked->rank());
  if (!axis)
    return InferStatus::Error;
  y = TensorInfo::make(y.type, ranked->dims);
  y.dims[*axis] = Dim(0);
  for (const TensorInfo &x : ctx.in) {
    if (x.hasRank && x.rank() != y.rank())
      return ctx.fail("operands of concat have different ranks: " + ranked->str() + " and " + x.str());
    y.dims[*axis] = y.dims[*axis] + (x.hasRank ? x.dims[*axis] : Dim());
    for (int i = 0; i < x.rank(); ++i) {
      if (i == *axis)
        continue;
      std::optional<Dim> both = mergeDims(y.dims[i], x.dims[i]);
      if (!both)
        return ctx.fail("cannot concat " + ranked->str() + " and " + x.str() + " along axis " +
                        std::to_string(*axis) + ": dim " + std::to_string(i) + " differs");
      y.dims[i] = *both;
    }
  }
  concatContents(ctx, size_t(*axis));
  return InferStatus::Ok;
}

namespace {

// How much of `dim` each of `parts` results gets when nothing says so: equal chunks, the last one smaller.
std::vector<Dim> equalChunks(Dim dim, size_t parts) {
  int64_t n = int64_t(parts);
  Dim above[] = {dim}, below[] = {Dim(n)};
  if (dim.isSymbolic())
    if (Dim exact = exactQuotient(above, below);
        exact.isConst() || (exact.isSymbolic() && exact.node()->op != DimOp::FloorDiv))
      return std::vector<Dim>(parts, exact);
  Dim chunk = ceilDiv(dim, Dim(n));
  std::vector<Dim> chunks(parts, chunk);
  if (!dim.isConst()) {
    chunks.back() = dim - chunk * Dim(n - 1);
    return chunks;
  }
  int64_t left = dim.value();
  for (Dim &part : chunks) {
    part = min(chunk, Dim(left));
    left -= part.value();
  }
  return chunks;
}

} // namespace

InferStatus inferSplit(InferContext &ctx) {
  if (!checkCounts(ctx, 1, 2, 1, SIZE_MAX) || !checkIntegers(ctx, 1))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  for (TensorInfo &y : ctx.out)
    y.type = x.type;
  if (!x.hasRank)
    return InferStatus::Ok;
  std::optional<int> axis = checkAxis(ctx, ctx.attrs.i("axis", 0), x.rank());
  if (!axis)
    return InferStatus::Error;
  size_t parts = ctx.out.size();
  if (ctx.attrs.i("num_outputs", int64_t(parts)) != int64_t(parts))
    return ctx.fail("num_outputs is " + std::to_string(ctx.attrs.i("num_outputs", 0)) + " but there are " +
                    std::to_string(parts) + " results");
  std::span<const int64_t> listed = ctx.attrs.ints("split");
  std::vector<Dim> chunks(listed.begin(), listed.end());
  bool needs = false;
  if (ctx.has(1)) {
    needs = !ctx.ints(1);
    chunks = needs ? std::vector<Dim>(parts) : *ctx.ints(1);
  } else if (listed.empty()) {
    chunks = equalChunks(x.dims[*axis], parts);
  }
  if (chunks.size() != parts)
    return ctx.fail("split has " + std::to_string(chunks.size()) + " entries for " + std::to_string(parts) +
                    " results");
  Dim sum(0);
  for (size_t k = 0; k < parts; ++k) {
    if (chunks[k].isConst() && chunks[k].value() < 0)
      return ctx.fail("entry " + std::to_string(k) + " of split is " + chunks[k].str() +
                      ", expected 0 or more");
    needs |= chunks[k].isUnknown() && ctx.has(1);
    sum = sum + chunks[k];
    ctx.out[k] = TensorInfo::make(x.type, x.dims);
    ctx.out[k].dims[*axis] = chunks[k];
  }
  if (sum.isConst() && x.dims[*axis].isConst() && !sum.provablyEqual(x.dims[*axis]))
    return ctx.fail("split adds up to " + sum.str() + " but dim " + std::to_string(*axis) + " of " + x.str() +
                    " is " + x.dims[*axis].str());
  if (needs)
    return askForContents(ctx, 1);
  if (!contentsFit(x))
    return InferStatus::Ok;
  // Of a tensor without elements nothing is read, and its strides may not fit.
  int64_t stride = knownElements(x) == 0 ? 0 : stridesOf(x.dims)[*axis];
  int64_t whole = x.dims[*axis].value() * stride, offset = 0;
  for (size_t k = 0; k < parts && chunks[k].isConst(); ++k) {
    int64_t run = chunks[k].value() * stride;
    mapContents(x, ctx.out[k], [&](int64_t i) { return i / run * whole + offset + i % run; });
    offset += run;
  }
  return InferStatus::Ok;
}

namespace {

// Contents of a result whose element at some coordinates is x's at the same coordinates modulo x's dims.
void repeatContents(const TensorInfo &x, TensorInfo &y) {
  int64_t count = knownElements(y);
  if (count <= 0 || count > kMaxKnownElements || !contentsFit(x))
    return;
  std::vector<int64_t> from = stridesOf(x.dims), to = stridesOf(y.dims);
  size_t offset = y.dims.size() - x.dims.size();
  mapContents(x, y, [&](int64_t k) {
    int64_t at = 0;
    for (size_t i = 0; i < x.dims.size(); ++i)
      at += k / to[offset + i] % y.dims[offset + i].value() % x.dims[i].value() * from[i];
    return at;
  });
}

} // namespace

InferStatus inferExpand(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1) || !checkIntegers(ctx, 1))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  ctx.out[0].type = x.type;
  const std::vector<Dim> *shape = ctx.ints(1);
  if (!shape) {
    const TensorInfo &info = ctx.in[1];
    if (x.hasRank && info.rank() == 1 && info.dims[0].isConst() && info.dims[0].value() <= kMaxRank)
      ctx.out[0] = TensorInfo::make(
          x.type, std::vector<Dim>(size_t(std::max<int64_t>({info.dims[0].value(), x.rank(), 0}))));
    return askForContents(ctx, 1);
  }
  if (!checkRank(ctx, shape->size()))
    return InferStatus::Error;
  bool needs = false;
  for (Dim dim : *shape) {
    if (dim.isConst() && dim.value() < 0)
      return ctx.fail("the shape to expand to has the entry " + dim.str() + ", expected 0 or more");
    needs |= dim.isUnknown();
  }
  TensorInfo both[] = {TensorInfo::make(x.type, x.dims), TensorInfo::make(x.type, *shape)};
  both[0].hasRank = x.hasRank;
  if (!broadcastDims(ctx, both, ctx.out[0]))
    return InferStatus::Error;
  if (needs)
    return askForContents(ctx, 1);
  if (x.hasRank)
    repeatContents(x, ctx.out[0]);
  return InferStatus::Ok;
}

InferStatus inferTile(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 2, 1, 1) || !checkIntegers(ctx, 1))
    return InferStatus::Error;
  const TensorInfo &x = ctx.in[0];
  TensorInfo &y = ctx.out[0];
  y.type = x.type;
  if (x.hasRank)
    y = TensorInfo::make(x.type, std::vector<Dim>(x.dims.size()));
  const std::vector<Dim> *repeats = ctx.ints(1);
  if (!repeats)
    return askForContents(ctx, 1);
  if (!x.hasRank)
    return InferStatus::Ok;
  if (repeats->size() != x.dims.size())
    return ctx.fail("repeats has " + std::to_string(repeats->size()) + " entries for " + x.str());
  bool needs = false;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    Dim repeat = (*repeats)[i];
    if (repeat.isConst() && repeat.value() < 0)
      return ctx.fail("repeats has the entry " + repeat.str() + ", expected 0 or more");
    needs |= repeat.isUnknown();
    y.dims[i] = x.dims[i] * repeat;
  }
  if (needs)
    return askForContents(ctx, 1);
  repeatContents(x, y);
  return InferStatus::Ok;
}

} // namespace dspark::movement
