// Pooling of 8-bit tensors: maxima of the bytes themselves, and qlinear_pool's averages, which are sums of
// whole numbers scaled once: (sum - count * x_zero) * x_scale / (divisor * y_scale).
#include "kernels/matmul/integer_result.h"
#include "kernels/pool/pool.h"
#include "kernels/pool/pool_bytes.h"
#include "kernels/pool/pool_plan.h"
#include <algorithm>

namespace dspark {
namespace {

struct State {
  PoolPlan plan;
  bool isAverage;
};

void prepare(const KernelCall &call, KernelWork &work, bool isAverage) {
  State &state = work.make<State>();
  PoolPlan &plan = state.plan;
  plan.read(call);
  state.isAverage = isAverage;
  if (!call.attrs.has("kernel_shape"))
    for (int i = 0; i < 3; ++i)
      plan.kernel[i] = std::max<int64_t>(plan.in[i], 1);
  int64_t taps = 1; // inside the image
  for (int i = 0; i < 3; ++i)
    taps *= std::min(plan.kernel[i], plan.in[i]);
  int64_t outputs = plan.batch * plan.outPixels() * (plan.isChannelsLast ? 1 : plan.channels);
  work.scratchPerThread = size_t(taps) * sizeof(uint8_t *);
  work.bytes = double(call.in[0].elements() + call.out[0].elements());
  int64_t work8 =
      outputs * std::max<int64_t>(taps, 1) * (plan.isChannelsLast ? plan.channels : 1) / (64 * 1024);
  work.tiles[0] = uint32_t(std::clamp<int64_t>(work8, 1, std::clamp<int64_t>(outputs, 1, 64)));
}

// Output `index`: all channels of a pixel, or one where channels come first.
struct Output {
  const KernelCall &call;
  const State &state;
  const PoolBytesOps &ops;
  const uint8_t **taps;

  const PoolPlan &plan = state.plan;
  int64_t channels = plan.isChannelsLast ? plan.channels : 1;
  bool xSigned = call.in[0].type == DType::I8, ySigned = call.out[0].type == DType::I8;

  void run(int64_t index) const {
    int64_t pixel = index % plan.outPixels(), plane = index / plan.outPixels();
    int64_t at[3] = {pixel / (plan.out[2] * plan.out[1]), pixel / plan.out[2] % plan.out[1],
                     pixel % plan.out[2]};
    const uint8_t *x = call.in[0].as<uint8_t>() + plane * plan.inPixels() * channels;
    PoolSpan spans[3] = {{plan, 0, at[0]}, {plan, 1, at[1]}, {plan, 2, at[2]}};
    int64_t count = 0;
    for (int64_t k0 = spans[0].begin; k0 < spans[0].end; ++k0)
      for (int64_t k1 = spans[1].begin; k1 < spans[1].end; ++k1) {
        int64_t line =
            ((spans[0].first + k0 * plan.dilation[0]) * plan.in[1] + spans[1].first + k1 * plan.dilation[1]) *
            plan.in[2];
        for (int64_t k2 = spans[2].begin; k2 < spans[2].end; ++k2)
          taps[count++] = x + (line + spans[2].first + k2 * plan.dilation[2]) * channels;
      }
    PoolBytes bytes = {taps,
                       count,
                       channels,
                       uint8_t(xSigned ? 0x80 : 0),
                       uint8_t(ySigned ? 0x80 : 0),
                       call.out[0].as<uint8_t>() + index * channels,
                       0,
                       0,
                       0};
    if (!state.isAverage)
      return ops.max(bytes);
    bytes.shift = int32_t(count * (zeroAt(call.in[2], 0) + (xSigned ? 128 : 0)));
    bytes.scale = scaleAt(call.in[1], 0) / (float(plan.divisor(at, count)) * scaleAt(call.in[3], 0));
    bytes.zero = float(zeroAt(call.in[4], 0) + (ySigned ? 128 : 0));
    ops.average(bytes);
  }
};

} // namespace

bool acceptsPoolBytes(const KernelCall &call) {
  return dtypeBits(call.in[0].type) == 8 && isInteger(call.in[0].type) && call.out.size() == 1;
}
void preparePoolBytes(const KernelCall &call, KernelWork &work) { prepare(call, work, false); }
void prepareQlinearPool(const KernelCall &call, KernelWork &work) { prepare(call, work, true); }

template <Isa isa> void runPoolBytes(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  const PoolPlan &plan = state.plan;
  Output output = {call, state, poolBytesOps(isa), reinterpret_cast<const uint8_t **>(part.scratch)};
  int64_t outputs = plan.batch * plan.outPixels() * (plan.isChannelsLast ? 1 : plan.channels);
  for (uint32_t tile = part.begin; tile < part.end; ++tile)
    for (int64_t i = outputs * tile / work.tiles[0]; i < outputs * (tile + 1) / work.tiles[0]; ++i)
      output.run(i);
}
template void runPoolBytes<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runPoolBytes<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runPoolBytes<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
