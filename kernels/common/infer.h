// Small parts that shape functions share: argument checks with uniform messages, contents of operands as
// numbers, and a little algebra on dims that keeps symbolic results exact and short.
#pragma once
#include "kernels/common/shape.h"
#include <optional>

namespace dspark {

// --- checks: each returns false after setting ctx.error ---

/// Between `required` and `maxIn` operands of which the first `required` are present, none of more than
/// kMaxRank dims; `minOut` to `maxOut` results.
bool checkCounts(InferContext &ctx, size_t required, size_t maxIn, size_t minOut, size_t maxOut);
/// Operand i is absent or has an integer type.
bool checkIntegers(InferContext &ctx, size_t i);
/// Operand i has element type `type`.
bool checkType(InferContext &ctx, size_t i, DType type);
/// Ranks beyond kMaxRank are refused.
bool checkRank(InferContext &ctx, size_t rank);
/// Attribute `name`, or operand value `axis`, as [0, rank).
std::optional<int> checkAxis(InferContext &ctx, int64_t axis, int rank);

// --- contents ---

/// The number of elements if every dim is a number >= 0 and the product fits, else -1.
int64_t knownElements(const TensorInfo &info);
/// Contents are known and their count is that of the dims.
bool contentsFit(const TensorInfo &info);
/// The contents of operand i if all entries are numbers.
std::optional<std::vector<int64_t>> constInts(const InferContext &ctx, size_t i);
/// NeedsContents for operand i. Where its contents are known already, and so are all dims, they did not
/// serve: that is an error, so that nobody is asked twice.
InferStatus askForContents(InferContext &ctx, int i);
/// The sole element of operand i, unknown if it is not known.
Dim scalarInt(const InferContext &ctx, size_t i);

/// Fills to's contents from from's: element k of `to` is element source(k) of `from`. Does nothing unless
/// from's contents fit and to's dims are numbers with few enough elements, or if a source does not exist.
template <typename Source> void mapContents(const TensorInfo &from, TensorInfo &to, Source source) {
  int64_t count = knownElements(to);
  if (count < 0 || count > kMaxKnownElements || !contentsFit(from))
    return;
  bool real = isFloat(from.type);
  size_t available = real ? from.floats.size() : from.ints.size();
  to.hasContents = true;
  for (int64_t k = 0; k < count; ++k) {
    size_t from_k = size_t(source(k));
    if (from_k >= available) {
      to.hasContents = false;
      to.ints.clear();
      to.floats.clear();
      return;
    }
    if (real)
      to.floats.push_back(from.floats[from_k]);
    else
      to.ints.push_back(from.ints[from_k]);
  }
}

/// Row-major strides, in elements, of dims that are all numbers.
std::vector<int64_t> stridesOf(std::span<const Dim> dims);
/// The dims as numbers, if they all are.
std::optional<std::vector<int64_t>> numbers(std::span<const Dim> dims);

// --- algebra ---

/// Certainly >= 0, given that symbols are.
bool isNonNegative(Dim dim);
/// max(dim, 0), or dim itself where it cannot be negative.
Dim clampToZero(Dim dim);
/// product(numerator) / product(denominator) where the division is known to be exact: equal factors cancel.
Dim exactQuotient(std::span<const Dim> numerator, std::span<const Dim> denominator);
/// One dim from two statements about it: the more precise of both. Nullopt if they contradict.
std::optional<Dim> mergeDims(Dim a, Dim b);

} // namespace dspark
