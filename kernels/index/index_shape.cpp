#include "kernels/common/families.h"
#include "kernels/index/index.h"

namespace dspark {

std::span<const OpEntry> indexOps() {
  using namespace index_ops;
  static const OpEntry ops[] = {
      {.name = "gather", .infer = inferGather, .takesStrings = true},
      {.name = "gather_elements", .infer = inferGatherElements, .takesStrings = true},
      {.name = "gather_nd", .infer = inferGatherNd, .takesStrings = true},
      {.name = "scatter_elements", .infer = inferScatterElements, .inPlace = 1, .takesStrings = true},
      {.name = "scatter_nd", .infer = inferScatterNd, .inPlace = 1, .takesStrings = true},
      {.name = "tensor_scatter", .infer = inferTensorScatter, .inPlace = 1},
      {.name = "constant_of_shape", .infer = inferConstantOfShape},
      {.name = "range", .infer = inferRange},
      {.name = "eye_like", .infer = inferEyeLike},
      {.name = "one_hot", .infer = inferOneHot, .takesStrings = true},
      {.name = "top_k", .infer = inferTopK},
      {.name = "nonzero", .infer = inferNonZero},
      {.name = "unique", .infer = inferUnique, .takesStrings = true},
      {.name = "compress", .infer = inferCompress, .takesStrings = true},
  };
  return ops;
}

} // namespace dspark
