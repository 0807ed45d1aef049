#include "kernels/quant/granularity.h"
#include <algorithm>

namespace dspark {

ScaleMap::ScaleMap(const TensorView &x, const TensorView &scale, const Attrs &attrs) {
  int64_t total = x.elements();
  granularity = Granularity::Tensor;
  length = 1;
  inner = std::max<int64_t>(total, 1);
  block = blocks = 1;
  bool blocked = attrs.i("block_size", 0) > 0;
  if (x.rank == 0 || (!blocked && scale.elements() == 1))
    return;
  int axis = normalizeAxis(attrs.i("axis", 1), x.rank);
  granularity = blocked ? Granularity::Block : Granularity::Axis;
  length = x.dim(axis);
  inner = x.elements(axis + 1, x.rank);
  block = blocked ? attrs.i("block_size", 1) : 1;
  blocks = blocked ? scale.dim(axis) : length;
}

ScaleMap::Run ScaleMap::runAt(int64_t at, int64_t end) const {
  if (granularity == Granularity::Tensor)
    return {end - at, 0, 0};
  int64_t i = at % inner, index = at / inner % length, outer = at / inner / length;
  if (granularity == Granularity::Axis && inner == 1)
    return {std::min(end - at, length - index), index, 1};
  if (granularity == Granularity::Axis)
    return {std::min(end - at, inner - i), index, 0};
  int64_t scale = (outer * blocks + index / block) * inner + i;
  if (inner == 1)
    return {std::min({end - at, block - index % block, length - index}), scale, 0};
  return {std::min(end - at, inner - i), scale, 1};
}

} // namespace dspark
