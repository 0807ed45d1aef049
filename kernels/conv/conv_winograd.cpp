// 3x3 convolution by Winograd's transform (winograd.h), where it is cheaper than the direct product. Of the
// transformed inputs (36/16 of the tensor) and the transformed filters (4 times the weights) whichever is
// used again and again is made first, for all threads; the other is made part by part, in the L2 cache:
//
//   few channels    phase 0: all filters
//                   phase 1: for a block of tiles: transform inputs; for each group of panels: 36 products,
//                            transform to outputs
//   many channels   phase 0: all inputs
//                   phase 1: for a block of tiles and a group of panels: three times transform 12 of the 36
//                            filters and make 12 products; transform to outputs
//
// So filters are transformed in every run: for n tiles that costs about 8 / n of the products, and the plan
// holds, and a run reads, 9 weights where it would be 36.
#include "kernels/conv/conv_f32.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/conv/winograd.h"
#include "kernels/conv/winograd_product.h"
#include "kernels/conv/winograd_scratch.h"
#include <algorithm>

namespace dspark {
namespace {

// Transformed filters that are read from the L2 or L3 cache, transformed inputs that stay in the L2 cache.
constexpr int64_t kFilterFloats = 160 * 1024, kInputFloats = 48 * 1024;

struct State {
  ConvPlan conv;
  Epilogue epilogue;
  int64_t tileRows, tileColumns, tiles; // per image; all
  bool makesFiltersFirst;
  int64_t panels, panelGroup, panelParts, rowParts; // panelParts is 1 where filters are made first
  int64_t inputRow, inputPoint; // floats of a row and of one of the 36 matrices of transformed inputs
  int64_t filterPoint, productPoint;
  int64_t filters, inputs, products, zeros; // offsets into a thread's scratch, in floats
};
static_assert(sizeof(State) <= 512);

// Multiply-adds of an image, and what the transforms take expressed in them (measured on Zen 3: bounded by
// 36 stores per vector of channels and tile, partly to the L3 cache, and by those of a vector of filters).
bool isCheaper(const ConvPlan &conv) {
  int64_t tiles = ceilOf(conv.out[1], kWinogradOut) * ceilOf(conv.out[2], kWinogradOut);
  double inputs = double(conv.inChannels), outputs = double(ceilOf(conv.outChannels, 8) * 8);
  double direct = double(conv.outPixels()) * 9 * inputs * outputs;
  double products = double(tiles) * kWinogradPoints * inputs * outputs;
  double transforms = 480 * double(tiles) * (inputs + outputs) + 280 * inputs * outputs;
  return products + transforms < 0.8 * direct;
}

// The tile's place: image, and first output.
struct Place {
  int64_t image, y, x;
};
Place placeOf(const State &state, int64_t tile) {
  int64_t perImage = state.tileRows * state.tileColumns, within = tile % perImage;
  return {tile / perImage, within / state.tileColumns * kWinogradOut,
          within % state.tileColumns * kWinogradOut};
}

// What one thread works with.
struct Run {
  const KernelCall &call;
  const State &state;
  const WinogradOps &ops;
  const GemmOps &gemm;
  float *scratch, *shared;

  // Tiles [begin, end), the first of them to row 0 of the matrices at `to`.
  void transformInputs(int64_t begin, int64_t end, float *to) const {
    const ConvPlan &conv = state.conv;
    float *zeros = scratch + state.zeros;
    std::fill(zeros, zeros + conv.inChannels, 0.0f);
    const float *pixels[kWinogradPoints];
    WinogradInput input = {pixels, conv.inChannels, to, state.inputPoint};
    for (int64_t tile = begin; tile < end; ++tile, input.to += state.inputRow) {
      Place place = placeOf(state, tile);
      for (int64_t i = 0; i < kWinogradIn; ++i) {
        int64_t y = place.y + i - conv.pad[1], x = place.x - conv.pad[2];
        int64_t line = (place.image * conv.in[1] + y) * conv.in[2];
        bool hasLine = y >= 0 && y < conv.in[1];
        for (int64_t j = 0; j < kWinogradIn; ++j, ++x)
          pixels[i * kWinogradIn + j] = hasLine && x >= 0 && x < conv.in[2]
                                            ? call.in[0].as<float>() + (line + x) * conv.inChannels
                                            : zeros;
      }
      ops.input(input);
    }
  }

  // One pair of filter rows of a panel.
  void transformFilters(int64_t panel, int pair, float *to) const {
    int64_t inputs = state.conv.inChannels;
    ops.filters({call.in[1].as<float>() + panel * 9 * inputs * kPanel, inputs, pair, to, state.filterPoint});
  }

  // Twelve products of `rows` tiles with the panels of `columns` outputs whose filters lie at `filters`.
  void multiply(const float *inputs, int64_t rows, int pair, const float *filters, int64_t panelStride,
                int64_t columns) const {
    WinogradProduct product = {gemm,
                               inputs,
                               state.inputRow,
                               state.inputPoint,
                               scratch + state.products,
                               state.panelGroup * kPanel,
                               state.productPoint,
                               rows,
                               state.conv.inChannels,
                               columns,
                               panelStride};
    for (int i = 0; i < kWinogradPerPair; ++i)
      product.run(winogradPoint(pair, i), filters + i * state.filterPoint);
  }

  // Products of tiles [begin, begin + rows) to outputs from `channel` on.
  void transformOutputs(int64_t begin, int64_t rows, int64_t channel, int64_t columns) const {
    const ConvPlan &conv = state.conv;
    WinogradOutput output = {};
    output.step = state.productPoint;
    output.columns = columns;
    output.pixel = conv.outChannels;
    output.line = conv.out[2] * conv.outChannels;
    output.bias = call.has(2) ? call.in[2].as<float>() + channel : nullptr;
    output.epilogue = state.epilogue;
    for (int64_t r = 0; r < rows; ++r) {
      Place place = placeOf(state, begin + r);
      int64_t pixel = (place.image * conv.out[1] + place.y) * conv.out[2] + place.x;
      output.products = scratch + state.products + r * state.panelGroup * kPanel;
      output.height = std::min<int64_t>(kWinogradOut, conv.out[1] - place.y);
      output.width = std::min<int64_t>(kWinogradOut, conv.out[2] - place.x);
      output.y = call.out[0].as<float>() + pixel * conv.outChannels + channel;
      output.residual = call.has(3) ? call.in[3].as<float>() + pixel * conv.outChannels + channel : nullptr;
      ops.output(output);
    }
  }

  void block(uint32_t share) const {
    int64_t row = share / state.panelParts, part = share % state.panelParts;
    int64_t begin = shareOf(state.tiles, row, state.rowParts),
            rows = shareOf(state.tiles, row + 1, state.rowParts) - begin;
    int64_t panel = part * state.panelGroup;
    int64_t end = state.makesFiltersFirst ? state.panels : std::min(panel + state.panelGroup, state.panels);
    const float *inputs = shared + begin * state.inputRow;
    if (state.makesFiltersFirst) {
      transformInputs(begin, begin + rows, scratch + state.inputs);
      inputs = scratch + state.inputs;
    }
    for (; panel < end; panel += state.panelGroup) {
      int64_t columns =
          std::min(std::min(panel + state.panelGroup, end) * kPanel, state.conv.outChannels) - panel * kPanel;
      for (int pair = 0; pair < kWinogradPairs; ++pair)
        if (state.makesFiltersFirst) {
          int64_t stride = kWinogradPoints * state.filterPoint;
          multiply(inputs, rows, pair, shared + panel * stride + pair * kWinogradPerPair * state.filterPoint,
                   stride, ceilOf(columns, 8) * 8);
        } else {
          int64_t stride = kWinogradPerPair * state.filterPoint;
          for (int64_t p = 0; p * kPanel < columns; ++p)
            transformFilters(panel + p, pair, scratch + state.filters + p * stride);
          multiply(inputs, rows, pair, scratch + state.filters, stride, ceilOf(columns, 8) * 8);
        }
      transformOutputs(begin, rows, panel * kPanel, columns);
    }
  }
};

// Sizes and offsets that follow from the blocks.
int64_t planScratch(State &state) {
  int64_t rows = ceilOf(state.tiles, state.rowParts), used = 0;
  bool first = state.makesFiltersFirst;
  state.inputPoint = spaced(state.inputRow * (first ? rows : state.tiles));
  state.filterPoint = spaced(state.conv.inChannels * kPanel);
  state.productPoint = spaced(rows * state.panelGroup * kPanel);
  state.filters = takeFloats(used, first ? 0 : kWinogradPerPair * state.panelGroup * state.filterPoint);
  state.inputs = takeFloats(used, first ? kWinogradPoints * state.inputPoint : 0);
  state.products = takeFloats(used, kWinogradPoints * state.productPoint);
  state.zeros = takeFloats(used, state.conv.inChannels);
  return used;
}

} // namespace

bool acceptsConvWinograd(const KernelCall &call) {
  if (!acceptsConvF32(call) || call.attrs.s("packed", "") != "panel16" ||
      call.attrs.s("layout", "nchw") != "nhwc" || call.attrs.i("group", 1) != 1 || call.in[0].rank != 4)
    return false;
  ConvPlan conv;
  conv.read(call, 1, false);
  for (int i = 1; i < 3; ++i)
    if (conv.kernel[i] != 3 || conv.stride[i] != 1 || conv.dilation[i] != 1)
      return false;
  return conv.inChannels >= 16 && isCheaper(conv);
}

void prepareConvWinograd(const KernelCall &call, KernelWork &work) {
  State &state = work.make<State>();
  ConvPlan &conv = state.conv;
  conv.read(call, 1, false);
  state.epilogue.read(call.attrs);
  state.tileRows = ceilOf(conv.out[1], kWinogradOut);
  state.tileColumns = ceilOf(conv.out[2], kWinogradOut);
  state.tiles = conv.batch * state.tileRows * state.tileColumns;
  state.panels = ceilOf(conv.outChannels, kPanel);
  state.panelGroup = conv.inChannels <= 128 ? std::min<int64_t>(state.panels, 2) : 1;
  // Rows begin at vectors, and not at multiples of a page, where they would share sets of the cache.
  state.inputRow = ceilOf(conv.inChannels, 16) * 16;
  state.inputRow += state.inputRow % 256 == 0 ? 16 : 0;

  int64_t rows = std::clamp<int64_t>(kInputFloats / (kWinogradPoints * state.inputRow), 12, kWinogradRows);
  int64_t filterFloats = kWinogradPoints * conv.inChannels * state.panels * kPanel;
  state.makesFiltersFirst = filterFloats <= kFilterFloats && state.tiles >= 4 * rows;
  state.rowParts = std::max<int64_t>(ceilOf(state.tiles, state.makesFiltersFirst ? rows : kWinogradRows), 1);
  state.panelParts = state.makesFiltersFirst ? 1 : ceilOf(state.panels, state.panelGroup);
  work.scratchPerThread = size_t(planScratch(state)) * sizeof(float);
  work.scratchShared = size_t(kWinogradPoints) * sizeof(float) *
                       size_t(state.makesFiltersFirst ? state.panels * state.filterPoint : state.inputPoint);

  work.phases = 2;
  work.tiles[0] =
      uint32_t(state.makesFiltersFirst ? state.panels * kWinogradPairs
                                       : std::clamp<int64_t>(state.tiles * conv.inChannels / 2048, 1, 64));
  work.tiles[1] = uint32_t(std::min<int64_t>(state.rowParts * state.panelParts, UINT32_MAX));
  work.flops = conv.flops();
  work.bytes = 4.0 * (double(call.in[0].elements()) + double(call.in[1].elements()) +
                      double(call.out[0].elements()) * (call.has(3) ? 2 : 1));
}

template <Isa isa>
void runConvWinograd(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  Run run = {call,
             state,
             winogradOps(isa),
             gemmOps(isa),
             reinterpret_cast<float *>(part.scratch),
             reinterpret_cast<float *>(part.shared)};
  for (uint32_t tile = part.begin; tile < part.end; ++tile) {
    if (part.phase == 1) {
      run.block(tile);
    } else if (state.makesFiltersFirst) {
      int pair = int(tile % kWinogradPairs);
      run.transformFilters(tile / kWinogradPairs, pair,
                           run.shared + tile * kWinogradPerPair * state.filterPoint);
    } else {
      int64_t begin = shareOf(state.tiles, tile, work.tiles[0]);
      run.transformInputs(begin, shareOf(state.tiles, tile + 1, work.tiles[0]),
                          run.shared + begin * state.inputRow);
    }
  }
}
template void runConvWinograd<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvWinograd<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvWinograd<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
