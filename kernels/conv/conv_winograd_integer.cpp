// 3x3 qlinear_conv by the exact transform of qwinograd.h, where it is cheaper than the direct product.
//
//   phase 0  transform all inputs, for all threads
//   phase 1  for a block of tiles and a panel of 16 outputs: for each block of input channels: transform
//   filters, 36
//            products, transform to sums; then sums to results
//
// Filters are transformed in every run: that costs about 2 / n of the products for n tiles of 4 x 4 outputs,
// and the plan holds 9 bytes where it would be 72.
#include "kernels/conv/conv_integer.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/conv/qwinograd.h"
#include "kernels/conv/winograd_scratch.h"
#include "kernels/matmul/integer_result.h"
#include <algorithm>
#include <cstring>

namespace dspark {
namespace {

constexpr int64_t kMaxRows = 96;          // tiles of one product
constexpr int64_t kInputBytes = 32 << 20; // transformed inputs; more would go to memory and back
constexpr int64_t kTileSums = kQWinogradOut * kQWinogradOut * kIntegerColumns;

struct State {
  ConvPlan conv;
  int64_t tileRows, tileColumns, tiles; // per image; all
  int64_t panels, rowParts;
  int64_t inputRow, inputPoint; // words of a row and of one of the 36 matrices of transformed inputs
  int64_t filterPoint, productPoint;
  int64_t wide, products, sums, padding; // offsets into a thread's scratch, in bytes; the filters come first
};
static_assert(sizeof(State) <= 512);

int64_t tilesOf(const ConvPlan &conv) {
  return conv.batch * ceilOf(conv.out[1], kQWinogradOut) * ceilOf(conv.out[2], kQWinogradOut);
}

// The tile's place: image, and first output.
struct Place {
  int64_t image, y, x;
};
Place placeOf(const State &state, int64_t tile) {
  int64_t perImage = state.tileRows * state.tileColumns, within = tile % perImage;
  return {tile / perImage, within / state.tileColumns * kQWinogradOut,
          within % state.tileColumns * kQWinogradOut};
}

// What one thread works with.
struct Run {
  const KernelCall &call;
  const State &state;
  Isa isa;
  std::byte *scratch;
  int16_t *inputs; // shared

  const ConvPlan &conv = state.conv;
  const QWinogradOps &ops = qwinogradOps(isa);
  PanelZeros zeros = PanelZeros(call.in[3], call.input(5));
  int32_t *products = reinterpret_cast<int32_t *>(scratch + state.products);
  int32_t *sums = reinterpret_cast<int32_t *>(scratch + state.sums);

  void transformInputs(int64_t begin, int64_t end) const {
    std::byte *padding = scratch + state.padding;
    int16_t zero = zeroAt(call.input(2), 0);
    std::memset(padding, zero, size_t(conv.inChannels));
    const std::byte *pixels[kQWinogradPoints];
    QWinogradInput input = {
        pixels,          conv.inChannels, call.in[0].type == DType::I8, zero, inputs + begin * state.inputRow,
        state.inputPoint};
    for (int64_t tile = begin; tile < end; ++tile, input.to += state.inputRow) {
      Place place = placeOf(state, tile);
      for (int64_t i = 0; i < kQWinogradIn; ++i) {
        int64_t y = place.y + i - conv.pad[1], x = place.x - conv.pad[2];
        int64_t line = (place.image * conv.in[1] + y) * conv.in[2];
        bool hasLine = y >= 0 && y < conv.in[1];
        for (int64_t j = 0; j < kQWinogradIn; ++j, ++x)
          pixels[i * kQWinogradIn + j] = hasLine && x >= 0 && x < conv.in[2]
                                             ? call.in[0].as<std::byte>() + (line + x) * conv.inChannels
                                             : padding;
      }
      ops.input(input);
    }
  }

  // Sums of tiles [begin, begin + rows) over input channels [first, first + count), for one panel.
  void addChannels(int64_t begin, int64_t rows, int64_t panel, int64_t first, int64_t count,
                   const int16_t *zero) const {
    auto *filters = reinterpret_cast<int16_t *>(scratch);
    ops.filters({call.in[3].as<int8_t>() + panel * packedPanelBytes(conv.depth()), conv.inChannels, first,
                 count, zero, reinterpret_cast<int16_t *>(scratch + state.wide), filters, state.filterPoint});
    ops.multiply({inputs + begin * state.inputRow + first, filters, products, state.inputRow, rows, count,
                  state.inputPoint, state.filterPoint, state.productPoint});
    for (int64_t r = 0; r < rows; ++r)
      ops.output({products + r * kIntegerColumns, state.productPoint,
                  sums + r * kQWinogradOut * kIntegerColumns, rows * kQWinogradOut * kIntegerColumns,
                  first == 0});
  }

  // Sums, line by line of [rows][4 pixels], to results. Tiles beside each other make one run of pixels.
  void store(int64_t begin, int64_t rows, int64_t channel, const ResultColumns &columns,
             const IntegerResult &result) const {
    for (int64_t r = 0, run; r < rows; r += run) {
      Place place = placeOf(state, begin + r);
      run = std::min(rows - r, state.tileColumns - place.x / kQWinogradOut);
      int64_t width = std::min(run * kQWinogradOut, conv.out[2] - place.x);
      int64_t pixel = (place.image * conv.out[1] + place.y) * conv.out[2] + place.x;
      for (int64_t line = 0; line < kQWinogradOut && place.y + line < conv.out[1]; ++line) {
        int64_t at = (pixel + line * conv.out[2]) * conv.outChannels + channel;
        result.store(igemmOps(isa), columns, sums + (line * rows + r) * kQWinogradOut * kIntegerColumns,
                     width, 0, result.at(at, conv.outChannels));
      }
    }
  }

  void block(int64_t share, const IntegerResult &result) const {
    int64_t row = share / state.panels, panel = share % state.panels;
    int64_t begin = shareOf(state.tiles, row, state.rowParts),
            rows = shareOf(state.tiles, row + 1, state.rowParts) - begin;
    int64_t channel = panel * kIntegerColumns,
            columns = std::min(kIntegerColumns, conv.outChannels - channel);
    int16_t zero[kIntegerColumns];
    bool hasZeros = zeros.read(channel, columns, zero);
    int64_t most = hasZeros ? kWinogradZeroChannels : kWinogradChannels, groups = conv.inChannels / 16,
            parts = ceilOf(conv.inChannels, most);
    for (int64_t i = 0; i < parts; ++i) {
      int64_t first = shareOf(groups, i, parts) * 16;
      addChannels(begin, rows, panel, first, shareOf(groups, i + 1, parts) * 16 - first,
                  hasZeros ? zero : nullptr);
    }
    ResultColumns parameters;
    result.read(channel, columns, parameters);
    store(begin, rows, channel, parameters, result);
  }
};

// Multiply-adds of a run, and what the transforms take expressed in them (measured on Zen 3 with AVX2, on Zen
// 4 with AVX-512). With VNNI the direct product makes twice as many at a time, and comes nearer to the peak.
bool isCheaper(const ConvPlan &conv, Isa isa) {
  bool hasVnni = isa == Isa::Avx512;
  double tiles = double(tilesOf(conv)), inputs = double(conv.inChannels),
         outputs = double(ceilOf(conv.outChannels, kIntegerColumns) * kIntegerColumns);
  double direct = double(conv.batch * conv.outPixels()) * 9 * inputs * outputs;
  double filters = double(ceilOf(int64_t(tiles), kMaxRows)) * inputs * outputs;
  double products = tiles * kQWinogradPoints * inputs * outputs;
  return products + 160 * tiles * inputs + 400 * tiles * outputs + (hasVnni ? 120 : 60) * filters <
         (hasVnni ? 0.4 : 0.9) * direct;
}

} // namespace

template <Isa isa> bool acceptsQlinearWinograd(const KernelCall &call) {
  if (call.attrs.s("packed", "") != "panel16k4" || call.attrs.s("layout", "nchw") != "nhwc" ||
      call.attrs.i("group", 1) != 1 || call.in[0].rank != 4)
    return false;
  ConvPlan conv;
  conv.read(call, 3, false);
  for (int i = 1; i < 3; ++i)
    if (conv.kernel[i] != 3 || conv.stride[i] != 1 || conv.dilation[i] != 1)
      return false;
  return conv.inChannels > 0 && conv.inChannels % 16 == 0 &&
         tilesOf(conv) <= kInputBytes / (kQWinogradPoints * 2 * conv.inChannels) && isCheaper(conv, isa);
}
template bool acceptsQlinearWinograd<Isa::Baseline>(const KernelCall &);
template bool acceptsQlinearWinograd<Isa::Avx2>(const KernelCall &);
template bool acceptsQlinearWinograd<Isa::Avx512>(const KernelCall &);

void prepareQlinearWinograd(const KernelCall &call, KernelWork &work) {
  State &state = work.make<State>();
  ConvPlan &conv = state.conv;
  conv.read(call, 3, false);
  state.tileRows = ceilOf(conv.out[1], kQWinogradOut);
  state.tileColumns = ceilOf(conv.out[2], kQWinogradOut);
  state.tiles = tilesOf(conv);
  state.panels = ceilOf(conv.outChannels, kIntegerColumns);
  state.rowParts = std::max<int64_t>(ceilOf(state.tiles, kMaxRows), 1);
  int64_t rows = ceilOf(state.tiles, state.rowParts), channels = std::min(conv.inChannels, kWinogradChannels);
  // Rows at multiples of a page would share sets of the cache.
  state.inputRow = conv.inChannels + (conv.inChannels % 512 == 0 ? 32 : 0);
  state.inputPoint = spaced(state.inputRow * state.tiles, 32);
  state.filterPoint = spaced(channels * kIntegerColumns, 32);
  state.productPoint = spaced(rows * kIntegerColumns, 16);
  int64_t used = 0;
  auto take = [&](int64_t bytes) { return takeBytes(used, bytes); };
  take(kQWinogradPoints * state.filterPoint * 2);
  state.wide = take(9 * channels * kIntegerColumns * 2);
  state.products = take(kQWinogradPoints * state.productPoint * 4);
  state.sums = take(rows * kTileSums * 4);
  state.padding = take(conv.inChannels);
  work.scratchPerThread = size_t(used);
  work.scratchShared = size_t(kQWinogradPoints * state.inputPoint * 2);
  work.phases = 2;
  work.tiles[0] = uint32_t(std::clamp<int64_t>(state.tiles * conv.inChannels / 2048, 1, 64));
  work.tiles[1] = uint32_t(std::min<int64_t>(state.rowParts * state.panels, UINT32_MAX));
  work.flops = conv.flops();
  work.bytes = double(call.in[0].elements()) + double(conv.outChannels * conv.depth()) +
               double(call.out[0].elements()) * dtypeBits(call.out[0].type) / 8;
}

template <Isa isa>
void runQlinearWinograd(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  Run run = {call, state, isa, part.scratch, reinterpret_cast<int16_t *>(part.shared)};
  const IntegerResult result(call, kQlinearOperands);
  for (uint32_t tile = part.begin; tile < part.end; ++tile)
    if (part.phase == 0)
      run.transformInputs(shareOf(state.tiles, tile, work.tiles[0]),
                          shareOf(state.tiles, tile + 1, work.tiles[0]));
    else
      run.block(tile, result);
}
template void runQlinearWinograd<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runQlinearWinograd<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runQlinearWinograd<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
