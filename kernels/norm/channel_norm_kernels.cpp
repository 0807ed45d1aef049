// Batch, instance and group normalisation of x[N, C, inner]: a shift, scale and bias for each channel, from
// operands (batch) or from the row's own mean and variance (instance, group).
#include "kernels/common/byte_tiles.h"
#include "kernels/common/operand.h"
#include "kernels/norm/float_norm.h"
#include "kernels/norm/rows.h"
#include <cmath>

namespace dspark::norm_ops {
namespace {

struct ChannelState {
  int64_t batch, channels, inner, groups;
  double epsilon;
};

ChannelState &describe(const KernelCall &call, KernelWork &work) {
  const TensorView &x = call.in[0];
  ChannelState &s = work.make<ChannelState>();
  s = {x.dims[0], x.rank > 1 ? x.dims[1] : 1, x.rank > 2 ? x.elements(2, x.rank) : 1, 1,
       call.attrs.f("epsilon", 1e-5)};
  int64_t elements = x.elements();
  work.tiles[0] = tilesForBytes(dtypeBytes(x.type, elements));
  work.flops = double(elements) * 2;
  work.bytes = double(dtypeBytes(x.type, elements)) * 2;
  return s;
}

bool allF32(const KernelCall &call) {
  for (const TensorView &x : call.in)
    if (x.type != DType::F32)
      return false;
  return true;
}

// y = (x - shift) * scale + bias over n elements of a row; f32 with SIMD.
template <const FloatNorm *kSimd>
void scaleRun(const KernelCall &call, int64_t begin, int64_t n, double shift, double scale, double bias) {
  if constexpr (kSimd != nullptr) {
    kSimd->scaleRow(call.in[0].as<const float>() + begin, call.out[0].as<float>() + begin, n, float(shift),
                    float(scale), float(bias));
  } else {
    dispatchFloat(call.in[0].type, [&]<typename T>() {
      for (int64_t i = begin; i < begin + n; ++i)
        call.out[0].as<T>()[i] = fromReal<T>((double(call.in[0].as<const T>()[i]) - shift) * scale + bias);
    });
  }
}

// --- batch_norm: operands scale, bias, mean, variance ---

void prepareBatch(const KernelCall &call, KernelWork &work) {
  describe(call, work);
  // For rows of channels: shift, scale and bias per channel.
  const ChannelState &s = work.get<ChannelState>();
  if (s.inner == 1)
    work.scratchPerThread = size_t(s.channels) * 2 * sizeof(float);
}

double batchScale(const KernelCall &call, const ChannelState &s, int64_t c) {
  return realAt(call.in[1], c) / std::sqrt(realAt(call.in[4], c) + s.epsilon);
}

template <const FloatNorm *kSimd>
void runBatch(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const ChannelState &s = work.get<ChannelState>();
  if (kSimd != nullptr && s.inner == 1) {
    RowRange rows(s.batch, work.tiles[0], part);
    float *scale = reinterpret_cast<float *>(part.scratch), *bias = scale + s.channels;
    for (int64_t c = 0; c < s.channels && rows.begin < rows.end; ++c) {
      double factor = batchScale(call, s, c);
      scale[c] = float(factor);
      bias[c] = float(realAt(call.in[2], c) - realAt(call.in[3], c) * factor);
    }
    for (int64_t row = rows.begin; row < rows.end; ++row)
      kSimd->normalize(call.in[0].as<const float>() + row * s.channels,
                       call.out[0].as<float>() + row * s.channels, s.channels, 0, 1, scale, bias);
    return;
  }
  RowRange rows(s.batch * s.channels, work.tiles[0], part);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    int64_t c = row % s.channels;
    scaleRun<kSimd>(call, row * s.inner, s.inner, realAt(call.in[3], c), batchScale(call, s, c),
                    realAt(call.in[2], c));
  }
}

// --- instance_norm and group_norm: one row is one group of channels of one sample ---

void prepareInstance(const KernelCall &call, KernelWork &work) {
  ChannelState &s = describe(call, work);
  s.groups = s.channels;
}
void prepareGroup(const KernelCall &call, KernelWork &work) {
  describe(call, work).groups = call.attrs.i("num_groups", 1);
}

struct Moments {
  double mean, inverse;
};

template <const FloatNorm *kSimd>
Moments momentsOf(const KernelCall &call, int64_t begin, int64_t n, double epsilon) {
  if constexpr (kSimd != nullptr) {
    const float *x = call.in[0].as<const float>() + begin;
    float mean = kSimd->mean(x, n);
    return {mean, 1.0 / std::sqrt(double(kSimd->meanSquare(x, n, mean)) + epsilon)};
  } else {
    double mean = 0, square = 0;
    dispatchFloat(call.in[0].type, [&]<typename T>() {
      const T *x = call.in[0].as<const T>() + begin;
      for (int64_t i = 0; i < n; ++i)
        mean += double(x[i]);
      mean /= double(n);
      for (int64_t i = 0; i < n; ++i)
        square += (double(x[i]) - mean) * (double(x[i]) - mean);
    });
    return {mean, 1.0 / std::sqrt(square / double(n) + epsilon)};
  }
}

template <const FloatNorm *kSimd>
void runGroup(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const ChannelState &s = work.get<ChannelState>();
  if (call.in[0].elements() == 0)
    return;
  int64_t perGroup = s.channels / s.groups;
  bool isPerGroup = call.in[1].dims[0] != s.channels, biasPerGroup = call.in[2].dims[0] != s.channels;
  RowRange rows(s.batch * s.groups, work.tiles[0], part);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    int64_t group = row % s.groups, begin = row * perGroup * s.inner;
    Moments m = momentsOf<kSimd>(call, begin, perGroup * s.inner, s.epsilon);
    for (int64_t k = 0; k < perGroup; ++k) {
      int64_t c = group * perGroup + k;
      scaleRun<kSimd>(call, begin + k * s.inner, s.inner, m.mean,
                      m.inverse * realAt(call.in[1], isPerGroup ? group : c),
                      realAt(call.in[2], biasPerGroup ? group : c));
    }
  }
}

constexpr Kernel kRows[] = {
    {"batch_norm", "batch_norm_f32_avx512", Isa::Avx512, allF32, prepareBatch, runBatch<&kFloatNormAvx512>},
    {"batch_norm", "batch_norm_f32_avx2", Isa::Avx2, allF32, prepareBatch, runBatch<&kFloatNormAvx2>},
    {"batch_norm", "batch_norm_f32", Isa::Baseline, allF32, prepareBatch, runBatch<&kFloatNormBaseline>},
    {"batch_norm", "batch_norm_any", Isa::Baseline, nullptr, prepareBatch, runBatch<nullptr>},
    {"instance_norm", "instance_norm_f32_avx512", Isa::Avx512, allF32, prepareInstance,
     runGroup<&kFloatNormAvx512>},
    {"instance_norm", "instance_norm_f32_avx2", Isa::Avx2, allF32, prepareInstance,
     runGroup<&kFloatNormAvx2>},
    {"instance_norm", "instance_norm_f32", Isa::Baseline, allF32, prepareInstance,
     runGroup<&kFloatNormBaseline>},
    {"instance_norm", "instance_norm_any", Isa::Baseline, nullptr, prepareInstance, runGroup<nullptr>},
    {"group_norm", "group_norm_f32_avx512", Isa::Avx512, allF32, prepareGroup, runGroup<&kFloatNormAvx512>},
    {"group_norm", "group_norm_f32_avx2", Isa::Avx2, allF32, prepareGroup, runGroup<&kFloatNormAvx2>},
    {"group_norm", "group_norm_f32", Isa::Baseline, allF32, prepareGroup, runGroup<&kFloatNormBaseline>},
    {"group_norm", "group_norm_any", Isa::Baseline, nullptr, prepareGroup, runGroup<nullptr>},
};

} // namespace

std::span<const Kernel> channelNormRows() { return kRows; }

} // namespace dspark::norm_ops
