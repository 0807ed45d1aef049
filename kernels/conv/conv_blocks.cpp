// Transposed convolution whose filters tile the output (kernel = stride, no padding) and that has few output
// channels: each input pixel makes one block of the output, so one product with (tap, channel) as columns
// computes all of it, where the general way would fill one or a few lanes of a vector per tap.
#include "kernels/conv/conv_f32.h"
#include "kernels/conv/conv_phases.h"
#include "kernels/matmul/gemm.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr int64_t kRows = 96;

struct State {
  ConvPlan conv;
  ConvPhases phases;
  Epilogue epilogue;
  int64_t columns;                      // taps * channels, up to whole vectors of 8
  int64_t panels, bias, products, copy; // offsets into a thread's scratch, in floats
};
static_assert(sizeof(State) <= 512);

int64_t take(int64_t &used, int64_t floats) {
  int64_t at = used;
  used += (floats + 15) / 16 * 16;
  return at;
}

// B[input][tap * outputs + output] in panels, from w[tap][input][16], and the biases of these columns.
void makePanels(const KernelCall &call, const State &state, const KernelPart &part, float *scratch) {
  const ConvPlan &conv = state.conv;
  const float *w = state.phases.w(call, part);
  int64_t padded = (state.columns + kPanel - 1) / kPanel * kPanel;
  for (int64_t column = 0; column < padded; ++column) {
    int64_t tap = column / conv.outChannels, o = column % conv.outChannels;
    bool isPadding = tap >= conv.taps;
    float *to = scratch + state.panels + column / kPanel * conv.inChannels * kPanel + column % kPanel;
    for (int64_t i = 0; i < conv.inChannels; ++i)
      to[i * kPanel] = isPadding ? 0 : w[(tap * conv.inChannels + i) * kPanel + o];
    scratch[state.bias + column] = isPadding || !call.has(2) ? 0 : call.in[2].as<float>()[o];
  }
}

// The products of one pixel to its block of the output: runs of the innermost kernel's taps.
void scatter(const ConvPlan &conv, int64_t pixel, const float *products, float *y) {
  int64_t i2 = pixel % conv.in[2], i1 = pixel / conv.in[2] % conv.in[1],
          i0 = pixel / (conv.in[2] * conv.in[1]) % conv.in[0];
  int64_t n = pixel / conv.inPixels(), run = conv.kernel[2] * conv.outChannels;
  for (int64_t k0 = 0; k0 < conv.kernel[0]; ++k0)
    for (int64_t k1 = 0; k1 < conv.kernel[1]; ++k1, products += run) {
      int64_t line = ((n * conv.out[0] + i0 * conv.stride[0] + k0) * conv.out[1] + i1 * conv.stride[1] + k1) *
                     conv.out[2];
      std::copy_n(products, run, y + (line + i2 * conv.stride[2]) * conv.outChannels);
    }
}

void runBlock(const KernelCall &call, const State &state, const GemmOps &ops, const KernelPart &part,
              uint32_t block) {
  const ConvPlan &conv = state.conv;
  float *scratch = reinterpret_cast<float *>(part.scratch);
  int64_t pixels = conv.batch * conv.inPixels(), first = int64_t(block) * kRows;
  const float *a[kRows];
  float *c[kRows];
  GemmTile tile = {};
  tile.rows = std::min(kRows, pixels - first);
  for (int64_t r = 0; r < tile.rows; ++r) {
    a[r] = state.phases.x(call, part) + (first + r) * conv.inChannels;
    c[r] = scratch + state.products + r * state.columns;
  }
  tile.a = a;
  tile.aStride = tile.rows;
  tile.c = c;
  tile.taps = 1;
  tile.depth = conv.inChannels;
  tile.panelStride = conv.inChannels * kPanel;
  tile.b = scratch + state.panels;
  tile.columns = state.columns;
  tile.bias = scratch + state.bias;
  tile.epilogue = state.epilogue;
  tile.copy = conv.inChannels > kBlockTerms ? scratch + state.copy : nullptr;
  ops.tile(tile);
  float *y = state.phases.y(call, part);
  for (int64_t r = 0; r < tile.rows; ++r)
    scatter(conv, first + r, c[r], y);
}

} // namespace

bool acceptsConvBlocks(const KernelCall &call) {
  if (!acceptsConvF32(call) || call.has(3) || call.attrs.i("group", 1) != 1)
    return false;
  ConvPlan conv;
  conv.read(call, 1, true);
  for (int i = 0; i < 3; ++i)
    if (conv.kernel[i] != conv.stride[i] || conv.pad[i] != 0 ||
        (conv.dilation[i] != 1 && conv.kernel[i] != 1) || conv.out[i] != conv.in[i] * conv.stride[i])
      return false;
  return conv.outChannels < kPanel && conv.taps > 1 && conv.taps <= 64;
}

void prepareConvBlocks(const KernelCall &call, KernelWork &work) {
  State &state = work.make<State>();
  ConvPlan &conv = state.conv;
  conv.read(call, 1, true);
  state.epilogue.read(call.attrs);
  state.columns = (conv.taps * conv.outChannels + 7) / 8 * 8;
  int64_t used = 0, padded = (state.columns + kPanel - 1) / kPanel * kPanel;
  state.panels = take(used, padded * conv.inChannels);
  state.bias = take(used, padded);
  state.products = take(used, kRows * state.columns);
  state.copy = take(used, conv.inChannels > kBlockTerms ? kGemmCopyFloats : 0);
  int64_t blocks = (conv.batch * conv.inPixels() + kRows - 1) / kRows;
  state.phases.plan(call, conv, false, uint32_t(std::min<int64_t>(blocks, UINT32_MAX)), work);
  work.scratchPerThread = size_t(used) * sizeof(float);
}

template <Isa isa>
void runConvBlocks(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  if (state.phases.runArrangement(call, state.conv, work, part))
    return;
  makePanels(call, state, part, reinterpret_cast<float *>(part.scratch));
  for (uint32_t tile = part.begin; tile < part.end; ++tile)
    runBlock(call, state, gemmOps(isa), part, tile);
}
template void runConvBlocks<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvBlocks<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvBlocks<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
