// det: Gaussian elimination with partial pivoting, in double. Tiles: matrices.
#include "kernels/common/element.h"
#include "kernels/ml/ml.h"
#include <algorithm>

namespace dspark {
namespace {

double determinant(double *a, int64_t n) {
  double result = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (std::fabs(a[i * n + k]) > std::fabs(a[pivot * n + k]))
        pivot = i;
    if (pivot != k) {
      std::swap_ranges(a + k * n, a + (k + 1) * n, a + pivot * n);
      result = -result;
    }
    double diagonal = a[k * n + k];
    result *= diagonal;
    if (diagonal == 0)
      return result;
    for (int64_t i = k + 1; i < n; ++i) {
      double factor = a[i * n + k] / diagonal;
      for (int64_t j = k + 1; j < n; ++j)
        a[i * n + j] -= factor * a[k * n + j];
    }
  }
  return result;
}

} // namespace

void prepareDet(const KernelCall &call, KernelWork &work) {
  int64_t n = call.in[0].dim(call.in[0].rank - 1), count = call.out[0].elements();
  work.tiles[0] = uint32_t(count);
  work.scratchPerThread = size_t(n * n) * sizeof(double);
  work.flops = 2.0 / 3 * double(n) * double(n) * double(n) * double(count);
}

void runDet(const KernelCall &call, const KernelWork &, const KernelPart &part) {
  int64_t n = call.in[0].dim(call.in[0].rank - 1);
  auto *a = reinterpret_cast<double *>(part.scratch);
  dispatchFloat(call.in[0].type, [&]<typename T>() {
    for (int64_t tile = part.begin; tile < part.end; ++tile) {
      const T *x = call.in[0].as<const T>() + tile * n * n;
      for (int64_t i = 0; i < n * n; ++i)
        a[i] = double(x[i]);
      call.out[0].as<T>()[tile] = fromReal<T>(determinant(a, n));
    }
  });
}

} // namespace dspark
