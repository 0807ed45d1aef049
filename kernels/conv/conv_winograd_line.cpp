// Convolution along one axis by Winograd's transform (winograd_line.h), where it is cheaper than the direct
// product:
//
//   phase 0: all filters, for all threads
//   phase 1: for a block of tiles: transform inputs; for each group of panels: eight products, transform to
//   outputs
//
// A dilated filter sees every dilation-th pixel, so a line is that many lines, one per residue. Filters are
// transformed in every run: for n tiles that costs about 8 / n of the products, and the plan holds, and a run
// reads, r weights instead of eight.
#include "kernels/conv/conv_f32.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/conv/winograd_line.h"
#include "kernels/conv/winograd_product.h"
#include "kernels/conv/winograd_scratch.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr int64_t kInputFloats = 48 * 1024; // transformed inputs that stay in the L2 cache

// Where the axis lies among pixels: pixel (outer, position, inner) of `inner` lines side by side.
struct Lines {
  int axis = 0;
  int64_t taps, dilation, pad, in, out, inner;
  int64_t outs, perResidue, tiles; // outputs of a tile, tiles of a residue, all

  explicit Lines(const ConvPlan &conv) {
    for (int i = 0; i < 3; ++i)
      if (conv.kernel[i] > 1)
        axis = i;
    taps = conv.kernel[axis], dilation = conv.dilation[axis], pad = conv.pad[axis];
    in = conv.in[axis], out = conv.out[axis], inner = 1;
    for (int i = axis + 1; i < 3; ++i)
      inner *= conv.out[i];
    outs = kLinePoints + 1 - taps;
    perResidue = ceilOf(ceilOf(out, dilation), outs);
    tiles = out > 0 ? conv.batch * (conv.outPixels() / out) * dilation * perResidue : 0;
  }
  Lines() = default;
};

// Only one axis has a filter, which walks in steps of one; the others are as they were.
bool isLine(const ConvPlan &conv) {
  int longs = 0;
  for (int i = 0; i < 3; ++i) {
    bool isLong = conv.kernel[i] > 1;
    longs += isLong;
    if (conv.stride[i] != 1 ||
        (isLong && conv.kernel[i] != 3 && conv.kernel[i] != 5 && conv.kernel[i] != 7) ||
        (!isLong && (conv.pad[i] != 0 || conv.in[i] != conv.out[i])))
      return false;
  }
  return longs == 1;
}

// Multiply-adds of one image, whose result must not depend on the batch, and what the transforms take
// expressed in them: bounded by their loads and stores, of which those of the filters go to the L3 cache.
bool isCheaper(const ConvPlan &conv, const Lines &lines) {
  double inputs = double(conv.inChannels), outputs = double(ceilOf(conv.outChannels, 8) * 8);
  double tiles = double(lines.tiles) / double(std::max<int64_t>(conv.batch, 1));
  double direct = double(conv.outPixels()) * double(lines.taps) * inputs * outputs;
  double products = tiles * kLinePoints * inputs * outputs;
  double transforms = 80 * tiles * (inputs + outputs) + 60 * inputs * outputs;
  return products + transforms < 0.8 * direct;
}

struct State {
  ConvPlan conv;
  Lines lines;
  Epilogue epilogue;
  int64_t panels, panelGroup, rowParts;
  int64_t inputRow, inputPoint; // floats of a row and of one of the eight matrices of transformed inputs
  int64_t filterPoint, productPoint;
  int64_t inputs, products, zeros; // offsets into a thread's scratch, in floats
};
static_assert(sizeof(State) <= 512);

// A tile's first output; the next is `dilation` positions further.
struct Place {
  int64_t outer, position, inner;
};
Place placeOf(const Lines &l, int64_t tile) {
  int64_t inner = tile % l.inner, rest = tile / l.inner;
  int64_t index = rest % l.perResidue, residue = rest / l.perResidue % l.dilation;
  return {rest / l.perResidue / l.dilation, residue + index * l.outs * l.dilation, inner};
}

// What one thread works with.
struct Run {
  const KernelCall &call;
  const State &state;
  const LineOps &ops;
  const GemmOps &gemm;
  float *scratch, *shared;

  void transformInputs(int64_t begin, int64_t end) const {
    const ConvPlan &conv = state.conv;
    const Lines &l = state.lines;
    float *zeros = scratch + state.zeros;
    std::fill(zeros, zeros + conv.inChannels, 0.0f);
    const float *pixels[kLinePoints];
    LineInput input = {pixels, conv.inChannels, scratch + state.inputs, state.inputPoint};
    for (int64_t tile = begin; tile < end; ++tile, input.to += state.inputRow) {
      Place place = placeOf(l, tile);
      for (int64_t i = 0, at = place.position - l.pad; i < kLinePoints; ++i, at += l.dilation)
        pixels[i] = at >= 0 && at < l.in
                        ? call.in[0].as<float>() +
                              ((place.outer * l.in + at) * l.inner + place.inner) * conv.inChannels
                        : zeros;
      ops.input(input);
    }
  }

  void multiply(int64_t rows, int64_t panel, int64_t columns) const {
    WinogradProduct product = {gemm,
                               scratch + state.inputs,
                               state.inputRow,
                               state.inputPoint,
                               scratch + state.products,
                               state.panelGroup * kPanel,
                               state.productPoint,
                               rows,
                               state.conv.inChannels,
                               ceilOf(columns, 8) * 8,
                               kLinePoints * state.filterPoint};
    for (int64_t point = 0; point < kLinePoints; ++point)
      product.run(point, shared + panel * product.panelStride + point * state.filterPoint);
  }

  // Products of tiles [begin, begin + rows) to outputs from `channel` on.
  void transformOutputs(int64_t begin, int64_t rows, int64_t channel, int64_t columns) const {
    const ConvPlan &conv = state.conv;
    const Lines &l = state.lines;
    LineOutput output = {};
    output.step = state.productPoint;
    output.columns = columns;
    output.taps = int(l.taps);
    output.pixel = l.dilation * l.inner * conv.outChannels;
    output.bias = call.has(2) ? call.in[2].as<float>() + channel : nullptr;
    output.epilogue = state.epilogue;
    for (int64_t r = 0; r < rows; ++r) {
      Place place = placeOf(l, begin + r);
      output.count = std::min(l.outs, ceilOf(l.out - place.position, l.dilation));
      if (output.count <= 0)
        continue; // a residue that has fewer outputs than the others
      int64_t at =
          ((place.outer * l.out + place.position) * l.inner + place.inner) * conv.outChannels + channel;
      output.products = scratch + state.products + r * state.panelGroup * kPanel;
      output.y = call.out[0].as<float>() + at;
      output.residual = call.has(3) ? call.in[3].as<float>() + at : nullptr;
      ops.output(output);
    }
  }

  void block(int64_t part) const {
    int64_t begin = shareOf(state.lines.tiles, part, state.rowParts),
            rows = shareOf(state.lines.tiles, part + 1, state.rowParts) - begin;
    transformInputs(begin, begin + rows);
    for (int64_t panel = 0; panel < state.panels; panel += state.panelGroup) {
      int64_t columns =
          std::min(std::min(panel + state.panelGroup, state.panels) * kPanel, state.conv.outChannels) -
          panel * kPanel;
      multiply(rows, panel, columns);
      transformOutputs(begin, rows, panel * kPanel, columns);
    }
  }
};

} // namespace

bool acceptsConvLine(const KernelCall &call) {
  if (!acceptsConvF32(call) || call.attrs.s("packed", "") != "panel16" ||
      call.attrs.s("layout", "nchw") != "nhwc" || call.attrs.i("group", 1) != 1)
    return false;
  ConvPlan conv;
  conv.read(call, 1, false);
  return conv.inChannels >= 16 && isLine(conv) && isCheaper(conv, Lines(conv));
}

void prepareConvLine(const KernelCall &call, KernelWork &work) {
  State &state = work.make<State>();
  ConvPlan &conv = state.conv;
  conv.read(call, 1, false);
  state.lines = Lines(conv);
  state.epilogue.read(call.attrs);
  state.panels = ceilOf(conv.outChannels, kPanel);
  state.panelGroup = std::min<int64_t>(state.panels, 4);
  // Rows begin at vectors, and not at multiples of a page, where they would share sets of the cache.
  state.inputRow = ceilOf(conv.inChannels, 16) * 16;
  state.inputRow += state.inputRow % 256 == 0 ? 16 : 0;
  int64_t most = std::clamp<int64_t>(kInputFloats / (kLinePoints * state.inputRow), 24, kWinogradRows);
  state.rowParts = std::max<int64_t>(ceilOf(state.lines.tiles, most), 1);
  int64_t rows = ceilOf(state.lines.tiles, state.rowParts), used = 0;
  state.inputPoint = spaced(state.inputRow * rows);
  state.filterPoint = spaced(conv.inChannels * kPanel);
  state.productPoint = spaced(rows * state.panelGroup * kPanel);
  state.inputs = takeFloats(used, kLinePoints * state.inputPoint);
  state.products = takeFloats(used, kLinePoints * state.productPoint);
  state.zeros = takeFloats(used, conv.inChannels);
  work.scratchPerThread = size_t(used) * sizeof(float);
  work.scratchShared = size_t(state.panels * kLinePoints * state.filterPoint) * sizeof(float);
  work.phases = 2;
  work.tiles[0] = uint32_t(state.panels);
  work.tiles[1] = uint32_t(std::min<int64_t>(state.rowParts, UINT32_MAX));
  work.flops = conv.flops();
  work.bytes = 4.0 * (double(call.in[0].elements()) + double(call.in[1].elements()) +
                      double(call.out[0].elements()) * (call.has(3) ? 2 : 1));
}

template <Isa isa> void runConvLine(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  Run run = {call,
             state,
             lineOps(isa),
             gemmOps(isa),
             reinterpret_cast<float *>(part.scratch),
             reinterpret_cast<float *>(part.shared)};
  int64_t inputs = state.conv.inChannels, taps = state.lines.taps;
  for (uint32_t tile = part.begin; tile < part.end; ++tile)
    if (part.phase == 1)
      run.block(tile);
    else
      run.ops.filters({call.in[1].as<float>() + tile * taps * inputs * kPanel, inputs, int(taps),
                       run.shared + tile * kLinePoints * state.filterPoint, state.filterPoint});
}
template void runConvLine<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvLine<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvLine<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
