// Pooling with channels last: one output pixel at a time, all of its channels.
#include "kernels/pool/pool.h"
#include "kernels/pool/pool_plan.h"
#include <algorithm>

namespace dspark {
namespace {

void poolAt(const KernelCall &call, const PoolPlan &plan, Isa isa, int64_t index, const float **taps) {
  int64_t at[3] = {index / (plan.out[2] * plan.out[1]) % plan.out[0], index / plan.out[2] % plan.out[1],
                   index % plan.out[2]};
  const float *x = call.in[0].as<float>() + index / plan.outPixels() * plan.inPixels() * plan.channels;
  PoolSpan spans[3] = {{plan, 0, at[0]}, {plan, 1, at[1]}, {plan, 2, at[2]}};
  int64_t count = 0;
  for (int64_t k0 = spans[0].begin; k0 < spans[0].end; ++k0)
    for (int64_t k1 = spans[1].begin; k1 < spans[1].end; ++k1) {
      int64_t line =
          ((spans[0].first + k0 * plan.dilation[0]) * plan.in[1] + spans[1].first + k1 * plan.dilation[1]) *
          plan.in[2];
      for (int64_t k2 = spans[2].begin; k2 < spans[2].end; ++k2)
        taps[count++] = x + (line + spans[2].first + k2 * plan.dilation[2]) * plan.channels;
    }
  float scale = 1.0f / float(plan.divisor(at, count));
  poolPixel(isa)(
      {taps, count, plan.channels, plan.kind, scale, call.out[0].as<float>() + index * plan.channels});
}

} // namespace

bool acceptsPoolF32(const KernelCall &call) {
  std::string_view kind = call.attrs.s("kind", "max");
  return call.in[0].type == DType::F32 && call.attrs.s("layout", "nchw") == "nhwc" &&
         (kind == "max" || kind == "average");
}

void preparePoolF32(const KernelCall &call, KernelWork &work) {
  PoolPlan &plan = work.make<PoolPlan>();
  plan.read(call);
  int64_t pixels = plan.batch * plan.outPixels(), taps = plan.kernel[0] * plan.kernel[1] * plan.kernel[2];
  work.scratchPerThread = size_t(std::min(taps, plan.inPixels())) * sizeof(float *);
  work.bytes = 4.0 * (double(call.in[0].elements()) + double(call.out[0].elements()));
  work.tiles[0] = uint32_t(std::clamp<int64_t>(pixels * plan.channels * taps / (16 * 1024), 1,
                                               std::clamp<int64_t>(pixels, 1, 64)));
}

template <Isa isa> void runPoolF32(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const PoolPlan &plan = work.get<PoolPlan>();
  int64_t pixels = plan.batch * plan.outPixels(), tiles = work.tiles[0];
  for (uint32_t tile = part.begin; tile < part.end; ++tile)
    for (int64_t i = pixels * tile / tiles; i < pixels * (tile + 1) / tiles; ++i)
      poolAt(call, plan, isa, i, reinterpret_cast<const float **>(part.scratch));
}
template void runPoolF32<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runPoolF32<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runPoolF32<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
