#include "kernels/common/infer.h"
#include "kernels/matmul/epilogue.h"
#include <algorithm>

namespace dspark {

bool activationOf(const Attrs &attrs, Activation &activation) {
  const auto *it = std::ranges::find(kActivationNames, attrs.s("activation", ""));
  if (it == std::end(kActivationNames))
    return false;
  activation = Activation(it - std::begin(kActivationNames));
  return true;
}

bool checkEpilogue(InferContext &ctx) {
  Activation activation;
  if (activationOf(ctx.attrs, activation))
    return true;
  ctx.error = "activation: expected a known name, found " + std::string(ctx.attrs.s("activation", ""));
  return false;
}

bool checkPacked(InferContext &ctx, std::initializer_list<std::string_view> layouts) {
  std::string_view packed = ctx.attrs.s("packed", "");
  if (std::ranges::find(layouts, packed) != layouts.end())
    return true;
  ctx.error = "packed: expected another layout than " + std::string(packed);
  return false;
}

bool checkResidual(InferContext &ctx, size_t i, TensorInfo &result) {
  if (!ctx.has(i))
    return true;
  const TensorInfo &residual = ctx.in[i];
  bool fits = residual.type == result.type;
  if (fits && residual.hasRank && result.hasRank) {
    fits = residual.rank() == result.rank();
    for (int d = 0; fits && d < result.rank(); ++d) {
      std::optional<Dim> both = mergeDims(result.dims[d], residual.dims[d]);
      fits = both.has_value();
      if (fits)
        result.dims[d] = *both;
    }
  }
  if (!fits)
    ctx.error = "residual: expected " + result.str() + ", found " + residual.str();
  return fits;
}

} // namespace dspark
