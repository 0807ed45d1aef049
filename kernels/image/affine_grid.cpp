// affine_grid: positions of an output image, mapped by one affine matrix per batch entry. Tiles: (batch,
// outermost row).
#include "kernels/common/element.h"
#include "kernels/image/image.h"

namespace dspark {
namespace {

struct AffineState {
  int64_t dims[3], rowPositions;
  int spatial;
  bool alignCorners;
};

// Centre of cell i of n cells over [-1, 1]; with alignCorners the outer centres are at the ends.
double centre(int64_t i, int64_t n, bool alignCorners) {
  if (alignCorners)
    return n > 1 ? -1 + 2.0 * double(i) / double(n - 1) : -1;
  return -1 + (2.0 * double(i) + 1) / double(n);
}

} // namespace

void prepareAffineGrid(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<AffineState>();
  const TensorView &y = call.out[0];
  s.spatial = y.rank - 2;
  for (int i = 0; i < s.spatial; ++i)
    s.dims[i] = y.dim(i + 1);
  s.rowPositions = y.elements(2, y.rank - 1);
  s.alignCorners = call.attrs.i("align_corners", 0) != 0;
  work.tiles[0] = uint32_t(y.dim(0) * s.dims[0]);
  work.bytes = double(dtypeBytes(y.type, y.elements()));
}

void runAffineGrid(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<AffineState>();
  int r = s.spatial;
  dispatchFloat(call.in[0].type, [&]<typename T>() {
    for (int64_t tile = part.begin; tile < part.end; ++tile) {
      const T *theta = call.in[0].as<const T>() + tile / s.dims[0] * r * (r + 1);
      T *out = call.out[0].as<T>() + tile * s.rowPositions * r;
      for (int64_t p = 0; p < s.rowPositions; ++p, out += r) {
        double position[4] = {0, 0, 0, 1}; // x, y(, z), then 1
        position[r] = 1;
        int64_t rest = p;
        for (int axis = r - 1; axis > 0; rest /= s.dims[axis], --axis)
          position[r - 1 - axis] = centre(rest % s.dims[axis], s.dims[axis], s.alignCorners);
        position[r - 1] = centre(tile % s.dims[0], s.dims[0], s.alignCorners);
        for (int i = 0; i < r; ++i) {
          double sum = 0;
          for (int j = 0; j <= r; ++j)
            sum += double(theta[i * (r + 1) + j]) * position[j];
          out[i] = fromReal<T>(sum);
        }
      }
    }
  });
}

} // namespace dspark
