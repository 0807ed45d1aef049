// Depthwise convolution: tiles are ranges of output rows by ranges of channels.
#include "kernels/conv/conv_f32.h"
#include "kernels/conv/conv_phases.h"
#include "kernels/conv/depthwise.h"
#include "kernels/matmul/matmul_plan.h"
#include <algorithm>

namespace dspark {
namespace {

struct State {
  ConvPlan conv;
  ConvPhases phases;
  Epilogue epilogue;
  int64_t rowTiles, channelTiles, channelStep;
};
static_assert(sizeof(State) <= 512);

// One row of output pixels at (n, o0, o1), channels from `channel` on.
void runRow(const State &state, Isa isa, DepthwiseRow row, const float *x, const float *w, int64_t index,
            std::byte *scratch) {
  const ConvPlan &conv = state.conv;
  int64_t o1 = index % conv.out[1], o0 = index / conv.out[1] % conv.out[0],
          n = index / (conv.out[1] * conv.out[0]);
  const float **lines = reinterpret_cast<const float **>(scratch);
  const float **weights = lines + conv.kernel[0] * conv.kernel[1];
  row.count = 0;
  for (int64_t k0 = 0; k0 < conv.kernel[0]; ++k0)
    for (int64_t k1 = 0; k1 < conv.kernel[1]; ++k1) {
      int64_t i0 = o0 * conv.stride[0] - conv.pad[0] + k0 * conv.dilation[0];
      int64_t i1 = o1 * conv.stride[1] - conv.pad[1] + k1 * conv.dilation[1];
      if (i0 < 0 || i0 >= conv.in[0] || i1 < 0 || i1 >= conv.in[1])
        continue;
      lines[row.count] = x + ((n * conv.in[0] + i0) * conv.in[1] + i1) * conv.in[2] * conv.inChannels;
      weights[row.count++] = w + (k0 * conv.kernel[1] + k1) * conv.kernel[2] * conv.inChannels;
    }
  row.lines = lines;
  row.w = weights;
  int64_t out = index * conv.out[2] * conv.outChannels;
  row.y += out;
  if (row.residual)
    row.residual += out;
  depthwiseRow(isa)(row);
}

} // namespace

bool acceptsDepthwise(const KernelCall &call) {
  const TensorView &x = call.in[0], &w = call.in[1];
  if (x.type != DType::F32 || call.attrs.s("packed", "") == "panel16")
    return false;
  int64_t channels = x.dim(call.attrs.s("layout", "nchw") == "nhwc" ? x.rank - 1 : 1);
  return call.attrs.i("group", 1) == channels && channels > 1 && w.dim(0) == channels && w.dim(1) == 1;
}

void prepareDepthwise(const KernelCall &call, KernelWork &work) {
  State &state = work.make<State>();
  ConvPlan &conv = state.conv;
  conv.read(call, 1, false);
  state.epilogue.read(call.attrs);
  int64_t rows = std::max<int64_t>(conv.batch * conv.out[0] * conv.out[1], 1);
  int64_t wanted = std::clamp<int64_t>(int64_t(conv.flops() / 100e3), 1, 64);
  state.rowTiles = std::min(wanted, rows);
  // Where rows are few, channels are cut too, at whole blocks of vectors.
  state.channelStep = conv.outChannels;
  if (state.rowTiles < std::min<int64_t>(wanted, 16)) {
    int64_t parts = std::min<int64_t>(wanted, 16) / state.rowTiles;
    state.channelStep = std::max<int64_t>((conv.outChannels / parts + 31) / 32 * 32, 32);
  }
  state.channelTiles = (conv.outChannels + state.channelStep - 1) / state.channelStep;
  state.phases.plan(call, conv, true, uint32_t(state.rowTiles * state.channelTiles), work);
  work.scratchPerThread = size_t(conv.kernel[0] * conv.kernel[1]) * 2 * sizeof(float *);
}

template <Isa isa> void runDepthwise(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  const ConvPlan &conv = state.conv;
  if (state.phases.runArrangement(call, conv, work, part))
    return;
  const float *residual = state.phases.residual(call, part);
  for (uint32_t tile = part.begin; tile < part.end; ++tile) {
    int64_t channel = tile % state.channelTiles * state.channelStep, share = tile / state.channelTiles;
    int64_t rows = conv.batch * conv.out[0] * conv.out[1];
    DepthwiseRow row = {};
    row.kernel = conv.kernel[2];
    row.stride = conv.stride[2];
    row.dilation = conv.dilation[2];
    row.pad = conv.pad[2];
    row.inWidth = conv.in[2];
    row.outWidth = conv.out[2];
    row.channels = std::min(state.channelStep, conv.outChannels - channel);
    row.allChannels = conv.outChannels;
    row.bias = call.has(2) ? call.in[2].as<float>() + channel : nullptr;
    row.residual = residual ? residual + channel : nullptr;
    row.y = past(state.phases.y(call, part), channel);
    row.epilogue = state.epilogue;
    for (int64_t r = rows * share / state.rowTiles; r < rows * (share + 1) / state.rowTiles; ++r)
      runRow(state, isa, row, state.phases.x(call, part) + channel, state.phases.w(call, part) + channel, r,
             part.scratch);
  }
}
template void runDepthwise<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runDepthwise<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runDepthwise<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
