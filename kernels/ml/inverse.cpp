// inverse: Gauss-Jordan elimination with partial pivoting, in double. Tiles: matrices. A singular matrix
// gives infinities and NaNs.
#include "kernels/common/element.h"
#include "kernels/ml/ml.h"
#include <algorithm>

namespace dspark {
namespace {

// Rows of [a | inverse], 2n wide; the left half becomes the identity.
void invert(double *rows, int64_t n) {
  int64_t width = 2 * n;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (std::fabs(rows[i * width + k]) > std::fabs(rows[pivot * width + k]))
        pivot = i;
    if (pivot != k)
      std::swap_ranges(rows + k * width, rows + (k + 1) * width, rows + pivot * width);
    double diagonal = rows[k * width + k];
    for (int64_t j = k; j < width; ++j)
      rows[k * width + j] /= diagonal;
    for (int64_t i = 0; i < n; ++i) {
      double factor = i == k ? 0 : rows[i * width + k];
      for (int64_t j = k; factor != 0 && j < width; ++j)
        rows[i * width + j] -= factor * rows[k * width + j];
    }
  }
}

} // namespace

void prepareInverse(const KernelCall &call, KernelWork &work) {
  int64_t n = call.in[0].dim(call.in[0].rank - 1), matrix = n * n;
  work.tiles[0] = matrix ? uint32_t(call.out[0].elements() / matrix) : 0;
  work.scratchPerThread = size_t(2 * matrix) * sizeof(double);
  work.flops = 2.0 * double(call.out[0].elements()) * double(n);
}

void runInverse(const KernelCall &call, const KernelWork &, const KernelPart &part) {
  int64_t n = call.in[0].dim(call.in[0].rank - 1);
  auto *rows = reinterpret_cast<double *>(part.scratch);
  dispatchFloat(call.in[0].type, [&]<typename T>() {
    for (int64_t tile = part.begin; tile < part.end; ++tile) {
      const T *x = call.in[0].as<const T>() + tile * n * n;
      T *y = call.out[0].as<T>() + tile * n * n;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) {
          rows[i * 2 * n + j] = double(x[i * n + j]);
          rows[i * 2 * n + n + j] = i == j;
        }
      invert(rows, n);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
          y[i * n + j] = fromReal<T>(rows[i * 2 * n + n + j]);
    }
  });
}

} // namespace dspark
