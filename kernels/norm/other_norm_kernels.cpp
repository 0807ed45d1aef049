// Normalisations that models rarely spend time in: one scalar kernel each, computed in f64 and rounded once.
#include "kernels/common/byte_tiles.h"
#include "kernels/common/element.h"
#include "kernels/norm/rows.h"
#include <cmath>

namespace dspark::norm_ops {
namespace {

void countBytes(const KernelCall &call, KernelWork &work) {
  work.bytes = double(dtypeBytes(call.in[0].type, call.in[0].elements())) * 2;
}

// --- lrn: x / (bias + alpha / size * sum of squares over neighbouring channels)^beta, x is [N, C, inner] ---

void prepareLrn(const KernelCall &call, KernelWork &work) {
  countBytes(call, work);
  work.tiles[0] = tilesForBytes(dtypeBytes(call.in[0].type, call.in[0].elements()) * 4);
}

void runLrn(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const TensorView &x = call.in[0];
  int64_t channels = x.dims[1], inner = x.elements(2, x.rank), size = call.attrs.i("size", 1);
  double alpha = call.attrs.f("alpha", 1e-4), beta = call.attrs.f("beta", 0.75),
         bias = call.attrs.f("bias", 1);
  int64_t below = std::min((size - 1) / 2, channels), above = std::min(size - 1 - (size - 1) / 2, channels);
  RowRange rows(x.dims[0] * channels, work.tiles[0], part);
  dispatchFloat(x.type, [&]<typename T>() {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      int64_t c = row % channels, first = row - c;
      int64_t begin = first + std::max<int64_t>(0, c - below),
              end = first + std::min(channels - 1, c + above);
      for (int64_t i = 0; i < inner; ++i) {
        double sum = 0;
        for (int64_t r = begin; r <= end; ++r) {
          double v = double(x.as<const T>()[r * inner + i]);
          sum += v * v;
        }
        double v = double(x.as<const T>()[row * inner + i]);
        call.out[0].as<T>()[row * inner + i] =
            fromReal<T>(v / std::pow(bias + alpha / double(size) * sum, beta));
      }
    }
  });
}

// --- lp_norm: x divided by the 1- or 2-norm of its line along the axis; a line of zeros stays ---

void prepareLp(const KernelCall &call, KernelWork &work) {
  countBytes(call, work);
  work.tiles[0] = tilesForBytes(dtypeBytes(call.in[0].type, call.in[0].elements()));
}

void runLp(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const TensorView &x = call.in[0];
  int64_t axis = call.attrs.i("axis", -1), p = call.attrs.i("p", 2);
  axis += axis < 0 ? x.rank : 0;
  int64_t size = x.dims[axis], inner = x.elements(int(axis) + 1, x.rank);
  RowRange lines(x.elements(0, int(axis)) * inner, work.tiles[0], part);
  dispatchFloat(x.type, [&]<typename T>() {
    for (int64_t line = lines.begin; line < lines.end; ++line) {
      int64_t first = line / inner * size * inner + line % inner;
      double sum = 0;
      for (int64_t i = 0; i < size; ++i) {
        double v = double(x.as<const T>()[first + i * inner]);
        sum += p == 1 ? std::fabs(v) : v * v;
      }
      double norm = p == 1 ? sum : std::sqrt(sum);
      for (int64_t i = 0; i < size; ++i)
        call.out[0].as<T>()[first + i * inner] =
            fromReal<T>(norm == 0 ? 0 : double(x.as<const T>()[first + i * inner]) / norm);
    }
  });
}

// --- mean_variance_norm: (x - mean) / (standard deviation + 1e-9) over any axes ---

struct MeanVarianceState {
  int64_t groups;
  int64_t stride[kMaxRank]; // of the group's number; 0 along axes that are averaged
};

void prepareMeanVariance(const KernelCall &call, KernelWork &work) {
  const TensorView &x = call.in[0];
  countBytes(call, work);
  MeanVarianceState &s = work.make<MeanVarianceState>();
  const int64_t usual[] = {0, 2, 3};
  std::span<const int64_t> axes = call.attrs.has("axes") ? call.attrs.ints("axes") : usual;
  uint32_t averaged = 0;
  for (int64_t axis : axes)
    averaged |= uint32_t(1) << (axis < 0 ? axis + x.rank : axis);
  s.groups = 1;
  for (int d = x.rank - 1; d >= 0; --d) {
    bool isKept = !(averaged >> d & 1);
    s.stride[d] = isKept ? s.groups : 0;
    s.groups *= isKept ? x.dims[d] : 1;
  }
  work.scratchShared = size_t(std::max<int64_t>(s.groups, 1)) * 2 * sizeof(double);
}

int64_t groupOf(const TensorView &x, const MeanVarianceState &s, int64_t k) {
  int64_t group = 0;
  for (int d = x.rank - 1; d >= 0; --d) {
    group += k % x.dims[d] * s.stride[d];
    k /= x.dims[d];
  }
  return group;
}

void runMeanVariance(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const MeanVarianceState &s = work.get<MeanVarianceState>();
  const TensorView &x = call.in[0];
  int64_t count = x.elements();
  if (count == 0)
    return;
  double *mean = reinterpret_cast<double *>(part.shared), *square = mean + s.groups;
  double perGroup = double(count / s.groups);
  std::fill(mean, mean + 2 * s.groups, 0.0);
  dispatchFloat(x.type, [&]<typename T>() {
    const T *from = x.as<const T>();
    for (int64_t k = 0; k < count; ++k)
      mean[groupOf(x, s, k)] += double(from[k]) / perGroup;
    for (int64_t k = 0; k < count; ++k) {
      int64_t group = groupOf(x, s, k);
      double d = double(from[k]) - mean[group];
      square[group] += d * d / perGroup;
    }
    for (int64_t k = 0; k < count; ++k) {
      int64_t group = groupOf(x, s, k);
      call.out[0].as<T>()[k] =
          fromReal<T>((double(from[k]) - mean[group]) / (std::sqrt(square[group]) + 1e-9));
    }
  });
}

constexpr Kernel kRows[] = {
    {"lrn", "lrn_any", Isa::Baseline, nullptr, prepareLrn, runLrn},
    {"lp_norm", "lp_norm_any", Isa::Baseline, nullptr, prepareLp, runLp},
    {"mean_variance_norm", "mean_variance_norm_any", Isa::Baseline, nullptr, prepareMeanVariance,
     runMeanVariance},
};

} // namespace

std::span<const Kernel> otherNormRows() { return kRows; }

} // namespace dspark::norm_ops
