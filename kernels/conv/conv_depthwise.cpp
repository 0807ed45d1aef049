// Depthwise convolution: tiles are ranges of output rows by ranges of channels. A tile is walked in strips,
// so that the input of an output row is still in the L1 cache for the rows below:
//
//   for each chunk of channels, as many as leave room for blocks of 8 pixels
//     for each strip of pixels
//       for each output row of the tile
#include "kernels/common/shares.h"
#include "kernels/conv/conv_f32.h"
#include "kernels/conv/conv_phases.h"
#include "kernels/conv/depthwise.h"
#include "kernels/matmul/matmul_plan.h"
#include <algorithm>

namespace dspark {
namespace {

// Floats of the input lines of a strip: within the L1 cache; whole rows where they stay in the L2 cache,
// since what comes from beyond it is fastest in long runs (160 x 160 x 32: 1.2 times).
constexpr int64_t kStripFloats = 5 * 1024, kRowFloats = 16 * 1024;

int64_t wholeVectors(int64_t channels) { return ceilOf(channels, 16) * 16; }

struct State {
  ConvPlan conv;
  ConvPhases phases;
  Epilogue epilogue;
  int64_t rowTiles, channelTiles, channelStep, chunk, strip;
};
static_assert(sizeof(State) <= 512);

// How much of a row, and how many channels of it, one strip takes.
void planStrips(State &state) {
  const ConvPlan &conv = state.conv;
  state.chunk = state.channelStep;
  state.strip = std::max<int64_t>(conv.out[2], 1);
  int64_t lines = conv.kernel[0] * conv.kernel[1];
  if (double(lines) * double(conv.in[2]) * double(state.chunk) <= double(kRowFloats))
    return;
  int64_t stride = std::min<int64_t>(conv.stride[2], 8), columns = kStripFloats / lines;
  int64_t halo = std::clamp<int64_t>((conv.kernel[2] - 1) * conv.dilation[2] + 1 - stride, 0, columns);
  int64_t room = columns / (8 * stride + halo) / 16 * 16; // channels, for a block of 8 pixels
  state.chunk = std::min(std::max<int64_t>(room, 64), state.channelStep);
  state.strip = std::max<int64_t>((columns / state.chunk - halo) / stride / 8 * 8, 8);
}

// What all rows of a chunk of channels have in common.
DepthwiseRow rowOf(const KernelCall &call, const State &state, const KernelPart &part, int64_t channel,
                   int64_t channels) {
  const ConvPlan &conv = state.conv;
  const float *residual = state.phases.residual(call, part);
  DepthwiseRow row = depthwiseRowOf(conv);
  row.channels = channels;
  row.bias = call.has(2) ? call.in[2].as<float>() + channel : nullptr;
  row.residual = residual ? residual + channel : nullptr;
  row.y = past(state.phases.y(call, part), channel);
  row.epilogue = state.epilogue;
  return row;
}

// The row of output pixels at (n, o0, o1), and if both can be taken at once the row below: how many it was.
int64_t runRows(const State &state, Isa isa, DepthwiseRow row, const float *x, const float *w, int64_t index,
                int64_t end, std::byte *scratch) {
  const ConvPlan &conv = state.conv;
  int64_t o1 = index % conv.out[1], o0 = index / conv.out[1] % conv.out[0],
          n = index / (conv.out[1] * conv.out[0]);
  const float **lines = reinterpret_cast<const float **>(scratch);
  const float **weights = lines + conv.kernel[0] * conv.kernel[1] + 2;
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
  // Where the lines of the next row end.
  int64_t below = (o1 + 1) * conv.stride[1] - conv.pad[1] + conv.kernel[1];
  if (takesTwoRows(isa, conv) && row.count == conv.kernel[1] && below <= conv.in[1] && o1 + 1 < conv.out[1] &&
      index + 1 < end) {
    for (int64_t i = row.count; i < row.count + conv.stride[1]; ++i)
      lines[i] = lines[i - 1] + conv.in[2] * conv.inChannels;
    row.nextRow = conv.out[2] * conv.outChannels;
  }
  depthwiseRow(isa)(row);
  return row.nextRow ? 2 : 1;
}

} // namespace

DepthwiseRow depthwiseRowOf(const ConvPlan &conv) {
  DepthwiseRow row = {};
  row.kernel = conv.kernel[2];
  row.stride = conv.stride[2];
  row.dilation = conv.dilation[2];
  row.pad = conv.pad[2];
  row.inWidth = conv.in[2];
  row.end = conv.out[2];
  row.channels = row.allChannels = conv.outChannels;
  row.lineStep = conv.inChannels;
  return row;
}

bool takesTwoRows(Isa isa, const ConvPlan &conv) {
  bool isPlain = conv.kernel[0] == 1;
  for (int i = 1; i < 3; ++i)
    isPlain &= conv.kernel[i] == 3 && conv.stride[i] == conv.stride[2] && conv.stride[i] <= 2 &&
               conv.dilation[i] == 1;
  return isPlain && isa == Isa::Avx512;
}

bool acceptsDepthwise(const KernelCall &call) {
  const TensorView &x = call.in[0], &w = call.in[1];
  std::string_view packed = call.attrs.s("packed", "");
  if (x.type != DType::F32 || (packed != "" && packed != "depthwise"))
    return false;
  int64_t channels = x.dim(call.attrs.s("layout", "nchw") == "nhwc" ? x.rank - 1 : 1);
  return call.attrs.i("group", 1) == channels && channels > 1 && w.dim(0) == channels && w.dim(1) == 1;
}

void prepareDepthwise(const KernelCall &call, KernelWork &work) {
  State &state = work.make<State>();
  ConvPlan &conv = state.conv;
  conv.read(call, 1, false);
  state.epilogue.read(call.attrs);
  int64_t rows = std::max<int64_t>(conv.batch * conv.out[0] * conv.out[1], 1), channels = conv.outChannels;
  // Rows first, in tiles of at least 8, which share input lines within; then channels.
  int64_t wanted = std::clamp<int64_t>(int64_t(conv.flops() / 150e3), 1, 32);
  state.rowTiles = evenParts(std::clamp<int64_t>(rows / 8, 1, wanted));
  int64_t parts =
      evenParts(std::clamp<int64_t>(wanted / state.rowTiles, 1, std::max<int64_t>(channels / 48, 1)));
  state.channelStep = wholeVectors((channels + parts - 1) / parts);
  state.channelTiles = (channels + state.channelStep - 1) / state.channelStep;
  planStrips(state);
  state.phases.plan(call, conv, true, uint32_t(state.rowTiles * state.channelTiles), work);
  work.scratchPerThread = size_t(conv.kernel[0] * conv.kernel[1] * 2 + 2) * sizeof(float *);
}

template <Isa isa> void runDepthwise(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  const ConvPlan &conv = state.conv;
  if (state.phases.runArrangement(call, conv, work, part))
    return;
  for (uint32_t tile = part.begin; tile < part.end; ++tile) {
    int64_t first = tile % state.channelTiles * state.channelStep, share = tile / state.channelTiles;
    int64_t end = std::min(first + state.channelStep, conv.outChannels);
    int64_t rows = conv.batch * conv.out[0] * conv.out[1];
    for (int64_t channel = first; channel < end; channel += state.chunk) {
      DepthwiseRow row = rowOf(call, state, part, channel, std::min(state.chunk, end - channel));
      const float *x = state.phases.x(call, part) + channel, *w = state.phases.w(call, part) + channel;
      for (row.begin = 0; row.begin < conv.out[2]; row.begin = row.end) {
        row.end = std::min(row.begin + state.strip, conv.out[2]);
        int64_t last = rows * (share + 1) / state.rowTiles;
        for (int64_t r = rows * share / state.rowTiles; r < last;)
          r += runRows(state, isa, row, x, w, r, last, part.scratch);
      }
    }
  }
}
template void runDepthwise<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runDepthwise<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runDepthwise<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
