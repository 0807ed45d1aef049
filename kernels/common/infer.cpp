#include "kernels/common/infer.h"
#include <algorithm>
#include <numeric>

namespace dspark {

bool checkCounts(InferContext &ctx, size_t required, size_t maxIn, size_t minOut, size_t maxOut) {
  auto range = [](size_t low, size_t high) {
    return low == high ? std::to_string(low) : std::to_string(low) + " to " + std::to_string(high);
  };
  if (ctx.in.size() < required || ctx.in.size() > maxIn)
    ctx.error = "expected " + range(required, maxIn) + " operands, found " + std::to_string(ctx.in.size());
  else if (ctx.out.size() < minOut || ctx.out.size() > maxOut)
    ctx.error = "expected " + range(minOut, maxOut) + " results, found " + std::to_string(ctx.out.size());
  else
    for (size_t i = 0; i < required; ++i)
      if (!ctx.has(i))
        ctx.error = "operand " + std::to_string(i) + " is missing";
  for (const TensorInfo &info : ctx.in)
    if (info.dims.size() > size_t(kMaxRank))
      ctx.error = "an operand has " + std::to_string(info.dims.size()) + " dims, at most " +
                  std::to_string(kMaxRank) + " are supported";
  return ctx.error.empty();
}

bool checkIntegers(InferContext &ctx, size_t i) {
  if (!ctx.has(i) || isInteger(ctx.in[i].type))
    return true;
  ctx.error = "operand " + std::to_string(i) + " must have an integer type, found " + ctx.in[i].str();
  return false;
}

bool checkType(InferContext &ctx, size_t i, DType type) {
  if (!ctx.has(i) || ctx.in[i].type == type)
    return true;
  ctx.error = "operand " + std::to_string(i) + " must have type " + std::string(dtypeName(type)) +
              ", found " + ctx.in[i].str();
  return false;
}

bool checkRank(InferContext &ctx, size_t rank) {
  if (rank <= size_t(kMaxRank))
    return true;
  ctx.error = "result would have " + std::to_string(rank) + " dims, at most " + std::to_string(kMaxRank) +
              " are supported";
  return false;
}

std::optional<int> checkAxis(InferContext &ctx, int64_t axis, int rank) {
  int normal = normalizeAxis(axis, rank);
  if (normal >= 0)
    return normal;
  ctx.error = "axis " + std::to_string(axis) + " is outside [" + std::to_string(-rank) + ", " +
              std::to_string(rank) + ")";
  return std::nullopt;
}

int64_t knownElements(const TensorInfo &info) {
  if (!info.hasRank)
    return -1;
  int64_t count = 1;
  bool fits = true, isEmpty = false;
  for (Dim dim : info.dims) {
    if (!dim.isConst() || dim.value() < 0)
      return -1;
    isEmpty |= dim.is(0);
    fits = fits && !__builtin_mul_overflow(count, dim.value(), &count);
  }
  return isEmpty ? 0 : fits ? count : -1;
}

bool contentsFit(const TensorInfo &info) {
  int64_t count = knownElements(info);
  return info.hasContents && count >= 0 &&
         size_t(count) == (isFloat(info.type) ? info.floats.size() : info.ints.size());
}

std::optional<std::vector<int64_t>> constInts(const InferContext &ctx, size_t i) {
  const std::vector<Dim> *ints = ctx.ints(i);
  return ints ? numbers(*ints) : std::nullopt;
}

InferStatus askForContents(InferContext &ctx, int i) {
  std::string what = "the shape depends on the contents of operand " + std::to_string(i);
  if (!ctx.has(size_t(i)))
    return ctx.fail(what + ", which is missing");
  const TensorInfo &info = ctx.in[size_t(i)];
  bool isKnown = contentsFit(info) && (isFloat(info.type) || numbers(info.ints));
  for (const TensorInfo &other : ctx.in) // a dim that the compiler does not know yet may be what is missing
    isKnown = isKnown && (!other.present() || knownElements(other) >= 0);
  return isKnown ? ctx.fail(what + ", and those of " + info.str() + " are of no use for that")
                 : ctx.needsContents(i);
}

Dim scalarInt(const InferContext &ctx, size_t i) {
  const std::vector<Dim> *ints = ctx.ints(i);
  return ints && ints->size() == 1 ? (*ints)[0] : Dim();
}

std::vector<int64_t> stridesOf(std::span<const Dim> dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;)
    // A stride that does not fit belongs to a tensor without elements, or to one too large to exist.
    if (__builtin_mul_overflow(strides[i], std::max<int64_t>(dims[i].value(), 1), &strides[i - 1]))
      strides[i - 1] = 0;
  return strides;
}

std::optional<std::vector<int64_t>> numbers(std::span<const Dim> dims) {
  std::vector<int64_t> values;
  for (Dim dim : dims) {
    if (!dim.isConst())
      return std::nullopt;
    values.push_back(dim.value());
  }
  return values;
}

namespace {

// `budget` bounds the visits: expressions share nodes, and a hostile model can make them deep.
bool nonNegative(Dim dim, int &budget) {
  if (!dim.isSymbolic())
    return dim.isConst() && dim.value() >= 0;
  if (--budget < 0)
    return false;
  const DimNode *node = dim.node();
  if (node->op == DimOp::Symbol)
    return true;
  Dim lhs(node->lhs), rhs(node->rhs);
  if (node->op == DimOp::Max)
    return nonNegative(lhs, budget) || nonNegative(rhs, budget);
  if (node->op == DimOp::Mod)
    return nonNegative(rhs, budget);
  return nonNegative(lhs, budget) && nonNegative(rhs, budget);
}

} // namespace

bool isNonNegative(Dim dim) {
  int budget = 256;
  return nonNegative(dim, budget);
}

Dim clampToZero(Dim dim) { return isNonNegative(dim) ? dim : max(dim, Dim(0)); }

namespace {

// The factors of a product: symbolic ones in `nodes`, the numbers multiplied into `number`.
struct Factors {
  int64_t number = 1;
  std::vector<const DimNode *> nodes;
  bool fits = true;

  void add(const DimNode *node) {
    if (nodes.size() > 64) {
      fits = false;
    } else if (node->op == DimOp::Mul) {
      add(node->lhs);
      add(node->rhs);
    } else if (node->op == DimOp::Const) {
      fits = fits && !__builtin_mul_overflow(number, node->value, &number);
    } else {
      nodes.push_back(node);
    }
  }
  void add(Dim dim) {
    if (dim.isSymbolic())
      add(dim.node());
    else if (dim.isConst())
      fits = fits && !__builtin_mul_overflow(number, dim.value(), &number);
    else
      fits = false;
  }
  Dim product() const {
    Dim result(1);
    for (const DimNode *node : nodes)
      result = result * Dim(node);
    return result * Dim(number);
  }
};

// The sum with every coefficient divided by `divisor`, unknown unless that is exact.
Dim divideTerms(const DimNode *node, int64_t divisor) {
  if (node->op == DimOp::Add) {
    Dim lhs = divideTerms(node->lhs, divisor), rhs = divideTerms(node->rhs, divisor);
    return lhs + rhs;
  }
  if (node->op == DimOp::Const)
    return node->value % divisor == 0 ? Dim(node->value / divisor) : Dim();
  if (node->op == DimOp::Mul && node->rhs->op == DimOp::Const && node->rhs->value % divisor == 0)
    return Dim(node->lhs) * Dim(node->rhs->value / divisor);
  return Dim();
}

} // namespace

Dim exactQuotient(std::span<const Dim> numerator, std::span<const Dim> denominator) {
  Factors above, below;
  for (Dim dim : numerator)
    above.add(dim);
  for (Dim dim : denominator)
    below.add(dim);
  if (!above.fits || !below.fits || below.number <= 0 || above.number == INT64_MIN)
    return Dim();
  std::erase_if(below.nodes, [&](const DimNode *node) {
    auto it = std::find(above.nodes.begin(), above.nodes.end(), node);
    if (it == above.nodes.end())
      return false;
    above.nodes.erase(it);
    return true;
  });
  int64_t common = std::gcd(above.number, below.number);
  if (common > 1) {
    above.number /= common;
    below.number /= common;
  }
  if (below.number > 1 && below.nodes.empty())
    for (const DimNode *&node : above.nodes)
      if (Dim part = divideTerms(node, below.number); part.isSymbolic()) {
        node = part.node();
        below.number = 1;
        break;
      }
  return floorDiv(above.product(), below.product());
}

std::optional<Dim> mergeDims(Dim a, Dim b) {
  if (a.isConst() && b.isConst() && a.value() != b.value())
    return std::nullopt;
  return a.isConst() || b.isUnknown() ? a : b.isConst() || a.isUnknown() ? b : a;
}

} // namespace dspark
