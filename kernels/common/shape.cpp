#include "kernels/common/shape.h"
#include <algorithm>

namespace dspark {

Dim dimProduct(std::span<const Dim> dims, size_t begin, size_t end) {
  Dim product(1);
  for (size_t i = begin; i < end; ++i)
    product = product * dims[i];
  return product;
}

Dim TensorInfo::elements() const { return hasRank ? dimProduct(dims, 0, dims.size()) : Dim(); }

std::string TensorInfo::str() const {
  if (!present())
    return "none";
  std::string out(dtypeName(type));
  if (!hasRank)
    return out + "[*]";
  out += '[';
  for (size_t i = 0; i < dims.size(); ++i)
    out += (i ? ", " : "") + dims[i].str();
  return out + ']';
}

int normalizeAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    return -1;
  return int(axis < 0 ? axis + rank : axis);
}

bool broadcastDims(InferContext &ctx, std::span<const TensorInfo> operands, TensorInfo &result) {
  size_t rank = 0;
  for (const TensorInfo &operand : operands) {
    if (!operand.present())
      continue;
    if (!operand.hasRank) {
      result.hasRank = false;
      result.dims.clear();
      return true;
    }
    rank = std::max(rank, operand.dims.size());
  }
  result.hasRank = true;
  result.dims.assign(rank, Dim(1));
  for (const TensorInfo &operand : operands) {
    if (!operand.present())
      continue;
    size_t offset = rank - operand.dims.size();
    for (size_t i = 0; i < operand.dims.size(); ++i) {
      Dim &dim = result.dims[offset + i];
      if (dim.isUnknown() || operand.dims[i].isUnknown()) {
        // An unknown dim can only be 1 or equal to a number other than 1.
        Dim known = dim.isUnknown() ? operand.dims[i] : dim;
        dim = known.isConst() && !known.is(1) ? known : Dim();
        continue;
      }
      std::optional<Dim> both = broadcast(dim, operand.dims[i]);
      if (!both) {
        ctx.error = "operand " + operand.str() + " does not broadcast: dim " + std::to_string(offset + i) +
                    " is " + operand.dims[i].str() + ", expected 1 or " + dim.str();
        return false;
      }
      dim = *both;
    }
  }
  return true;
}

} // namespace dspark
