// Integer convolution: the taps of a block of output pixels are gathered into rows (padding is the zero
// point), and multiplied with panels of 16 output channels. With channels last and packed weights everything
// is copied in runs; the forms ONNX has, channels first and weights as they are, are gathered element by
// element.
#include "kernels/conv/conv_integer.h"
#include "kernels/common/shares.h"
#include "kernels/common/tiles.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/matmul/igemm.h"
#include "kernels/matmul/integer_result.h"
#include "kernels/matmul/matmul_plan.h"
#include <algorithm>

namespace dspark {
namespace {

struct State {
  ConvPlan conv;
  bool isQlinear, isPacked;
  TileGrid grid; // per group
  // Offsets into a thread's scratch; the gathered rows come first.
  int64_t panels, ordered, wide, sums, rowSums, zeros, moved;
};
static_assert(sizeof(State) <= 512);

void prepare(const KernelCall &call, KernelWork &work, bool isQlinear) {
  State &state = work.make<State>();
  ConvPlan &conv = state.conv;
  state.isQlinear = isQlinear;
  state.isPacked = !call.attrs.s("packed", "").empty();
  conv.read(call, (isQlinear ? kQlinearOperands : kIntegerOperands).b, false);
  int64_t pixels = conv.batch * conv.outPixels(), depth = conv.depth();
  state.grid = cutProduct(pixels, conv.outPerGroup, depth, conv.group, integerTileRows(depth));
  int64_t rows = pixels / state.grid.rows + 1, used = 0;
  auto take = [&](int64_t bytes) { return takeBytes(used, bytes); };
  take(rows * ((depth + 3) / 4 * 4) * 2);
  state.panels = take(state.isPacked ? 0 : kIntegerPanels * packedPanelBytes(depth));
  state.ordered = take(state.isPacked ? 0 : kIntegerColumns * depth);
  state.wide = take(kIntegerScratch);
  state.sums = take(kIntegerPanels * rows * kIntegerColumns * 4);
  state.rowSums = take(rows * 4);
  state.zeros = take(rows * 2);
  state.moved = take(conv.isChannelsLast ? 0 : 2 * rows * kIntegerColumns * 4);
  work.scratchPerThread = size_t(used);
  work.tiles[0] = uint32_t(std::min<int64_t>(conv.group * state.grid.rows * state.grid.columns, UINT32_MAX));
  work.flops = conv.flops();
  work.bytes = double(call.in[0].elements()) + double(conv.outChannels * depth) +
               double(call.out[0].elements()) * dtypeBits(call.out[0].type) / 8;
}

// The coordinates of one output, counted up without a division.
struct OutputPixel {
  int64_t n, o[3];
  OutputPixel(const ConvPlan &conv, int64_t index)
      : n(index / conv.outPixels()), o{index / (conv.out[2] * conv.out[1]) % conv.out[0],
                                       index / conv.out[2] % conv.out[1], index % conv.out[2]} {}
  // `count` outputs on, at most to the end of the row.
  void next(const ConvPlan &conv, int64_t count) {
    for (int axis = 2; axis >= 0; --axis, count = 1) {
      if ((o[axis] += count) < conv.out[axis])
        return;
      o[axis] = 0;
    }
    ++n;
  }
};

// Rows of A for the output pixels of one group.
struct RowGather {
  const ConvPlan &conv;
  const IgemmOps &ops;
  const std::byte *x;
  bool isSigned;
  int16_t zero;
  int64_t group;

  int64_t pixelStep = conv.isChannelsLast ? conv.inChannels : 1;
  int64_t channelStep = conv.isChannelsLast ? 1 : conv.inPixels();
  // The innermost taps that lie inside the image are one run of memory.
  bool hasRuns = conv.isChannelsLast && conv.group == 1 && conv.dilation[2] == 1;

  // Taps of one line: input pixels from `line` on, the first tap at coordinate i2.
  void taps(const std::byte *line, int64_t i2, std::byte *out) const {
    int64_t tapBytes = conv.inPerGroup * ops.elementBytes;
    if (hasRuns) {
      int64_t begin = std::clamp<int64_t>(-i2, 0, conv.kernel[2]),
              end = std::clamp<int64_t>(conv.in[2] - i2, begin, conv.kernel[2]);
      if (begin > 0)
        ops.fill(isSigned, begin * conv.inPerGroup, zero, out);
      if (begin < end)
        ops.row(line + (i2 + begin) * pixelStep, isSigned, (end - begin) * conv.inPerGroup, 1, zero,
                out + begin * tapBytes);
      if (end < conv.kernel[2])
        ops.fill(isSigned, (conv.kernel[2] - end) * conv.inPerGroup, zero, out + end * tapBytes);
      return;
    }
    for (int64_t k = 0; k < conv.kernel[2]; ++k, i2 += conv.dilation[2], out += tapBytes)
      if (i2 >= 0 && i2 < conv.in[2])
        ops.row(line + i2 * pixelStep, isSigned, conv.inPerGroup, channelStep, zero, out);
      else
        ops.fill(isSigned, conv.inPerGroup, zero, out);
  }

  // Whether output pixels read one input pixel each, in order, and their rows need no filling up.
  bool isCopy() const {
    bool isPlain = hasRuns && conv.taps == 1 && conv.inPerGroup % 4 == 0;
    for (int i = 0; i < 3; ++i)
      isPlain &= conv.stride[i] == 1 && conv.pad[i] == 0 && conv.in[i] == conv.out[i];
    return isPlain;
  }

  // Whether the innermost taps of an output all lie inside the image, whole lines of them one run each.
  bool isInner(int64_t o2) const {
    int64_t i2 = o2 * conv.stride[2] - conv.pad[2];
    return hasRuns && i2 >= 0 && i2 + conv.kernel[2] <= conv.in[2];
  }

  // The taps of `count` such outputs that follow each other, line by line.
  void innerRows(const OutputPixel &pixel, int64_t count, std::byte *out) const {
    int64_t lineElements = conv.kernel[2] * conv.inPerGroup, step = rowBytes(ops, conv.depth()),
            stride = conv.stride[2] * pixelStep;
    for (int64_t k0 = 0; k0 < conv.kernel[0]; ++k0)
      for (int64_t k1 = 0; k1 < conv.kernel[1]; ++k1, out += lineElements * ops.elementBytes) {
        int64_t i0 = pixel.o[0] * conv.stride[0] - conv.pad[0] + k0 * conv.dilation[0];
        int64_t i1 = pixel.o[1] * conv.stride[1] - conv.pad[1] + k1 * conv.dilation[1];
        if (i0 < 0 || i0 >= conv.in[0] || i1 < 0 || i1 >= conv.in[1]) {
          for (int64_t p = 0; p < count; ++p)
            ops.fill(isSigned, lineElements, zero, out + p * step);
          continue;
        }
        int64_t i2 = pixel.o[2] * conv.stride[2] - conv.pad[2];
        const std::byte *line =
            x + (((pixel.n * conv.in[0] + i0) * conv.in[1] + i1) * conv.in[2] + i2) * pixelStep;
        if (ops.runs)
          ops.runs(line, isSigned, lineElements, stride, count, out, step);
        for (int64_t p = 0; !ops.runs && p < count; ++p)
          ops.row(line + p * stride, isSigned, lineElements, 1, zero, out + p * step);
      }
  }

  // The taps of an output pixel in order (tap, input channel).
  void row(const OutputPixel &pixel, std::byte *out) const {
    const std::byte *image =
        x + pixel.n * conv.inChannels * conv.inPixels() + group * conv.inPerGroup * channelStep;
    int64_t lineElements = conv.kernel[2] * conv.inPerGroup;
    for (int64_t k0 = 0; k0 < conv.kernel[0]; ++k0)
      for (int64_t k1 = 0; k1 < conv.kernel[1]; ++k1, out += lineElements * ops.elementBytes) {
        int64_t i0 = pixel.o[0] * conv.stride[0] - conv.pad[0] + k0 * conv.dilation[0];
        int64_t i1 = pixel.o[1] * conv.stride[1] - conv.pad[1] + k1 * conv.dilation[1];
        if (i0 < 0 || i0 >= conv.in[0] || i1 < 0 || i1 >= conv.in[1])
          ops.fill(isSigned, lineElements, zero, out);
        else
          taps(image + (i0 * conv.in[1] + i1) * conv.in[2] * pixelStep,
               pixel.o[2] * conv.stride[2] - conv.pad[2], out);
      }
  }
};

// One tile's operands and scratch.
struct Tile {
  const KernelCall &call;
  const State &state;
  const IgemmOps &ops;
  std::byte *scratch;

  const ConvPlan &conv = state.conv;
  const IntegerOperands &at = state.isQlinear ? kQlinearOperands : kIntegerOperands;
  const TensorView &x = call.in[0], &w = call.in[at.b];
  PanelZeros bZeros = PanelZeros(w, call.input(at.bZero));
  int16_t *zeros = reinterpret_cast<int16_t *>(scratch + state.zeros);
  int32_t *sums = reinterpret_cast<int32_t *>(scratch + state.sums);
  int32_t *rowSums = reinterpret_cast<int32_t *>(scratch + state.rowSums);
  const std::byte *gathered = scratch;
  int64_t group = 0, first = 0, rows = 0;
  bool hasRowSums = false;

  void run(uint32_t index) {
    int64_t tiles = state.grid.rows * state.grid.columns, pixels = conv.batch * conv.outPixels();
    auto [row, column] = state.grid.place(index % tiles);
    group = index / tiles;
    first = pixels * row / state.grid.rows;
    rows = pixels * (row + 1) / state.grid.rows - first;
    int64_t panels = (conv.outPerGroup + kIntegerColumns - 1) / kIntegerColumns;
    int64_t from = panels * column / state.grid.columns * kIntegerColumns,
            end = std::min(panels * (column + 1) / state.grid.columns * kIntegerColumns, conv.outPerGroup);
    if (rows <= 0 || end <= from)
      return;
    gatherRows();
    IntegerResult result(call, at);
    ResultColumns parameters[kIntegerPanels];
    SumsResult results[kIntegerPanels];
    for (int64_t columns; from < end; from += columns) {
      columns = std::min(kIntegerPanels * kIntegerColumns, end - from);
      int64_t count = (columns + kIntegerColumns - 1) / kIntegerColumns;
      bool isFused = result.isUniform() && conv.isChannelsLast;
      int16_t zero[kIntegerPanels][kIntegerColumns];
      for (int64_t p = 0; p < count; ++p) {
        int64_t channel = group * conv.outPerGroup + from + p * kIntegerColumns,
                width = std::min(kIntegerColumns, end - from - p * kIntegerColumns);
        isFused &= !bZeros.read(channel, width, zero[p]);
        result.read(channel, width, parameters[p]);
        if (isFused)
          results[p] = result.result(parameters[p], rows, placeOf(result, channel));
      }
      ops.tile({gathered, zeros, rows, conv.depth(), panelsAt(panels, from, columns), count,
                scratch + state.wide, sums, isFused ? results : nullptr});
      for (int64_t p = 0; p < count && !isFused; ++p)
        finish(result, parameters[p], p, from + p * kIntegerColumns, zero[p]);
    }
  }

  // The first pixel's y with channels last.
  ResultPlace placeOf(const IntegerResult &result, int64_t channel) const {
    return result.at(first * conv.outChannels + channel, conv.outChannels);
  }

  void gatherRows() {
    bool isSigned = x.type == DType::I8;
    RowGather gather = {conv, ops, x.as<std::byte>(), isSigned, zeroAt(call.input(at.aZero), 0), group};
    std::fill_n(zeros, rows, rowZero(ops, isSigned, gather.zero));
    if (gather.isCopy()) {
      const std::byte *pixels = gather.x + first * conv.inChannels;
      if (takesRowsAsTheyAre(ops, isSigned))
        gathered = pixels;
      else
        ops.row(pixels, isSigned, rows * conv.inChannels, 1, gather.zero, scratch);
      return;
    }
    OutputPixel pixel(conv, first);
    int64_t step = rowBytes(ops, conv.depth());
    for (int64_t r = 0, count; r < rows; r += count) {
      for (count = 0;
           r + count < rows && pixel.o[2] + count < conv.out[2] && gather.isInner(pixel.o[2] + count);)
        ++count;
      if (count > 0) {
        gather.innerRows(pixel, count, scratch + r * step);
      } else {
        gather.row(pixel, scratch + r * step);
        count = 1;
      }
      pixel.next(conv, count);
    }
  }

  const std::byte *panelsAt(int64_t panels, int64_t column, int64_t columns) {
    int64_t panelStep = packedPanelBytes(conv.depth());
    if (state.isPacked)
      return w.as<std::byte>() + (group * panels + column / kIntegerColumns) * panelStep;
    std::byte *to = scratch + state.panels, *ordered = scratch + state.ordered;
    for (int64_t done = 0; done < columns; done += kIntegerColumns, to += panelStep) {
      int64_t count = std::min(kIntegerColumns, columns - done);
      const std::byte *from = w.as<std::byte>() + (group * conv.outPerGroup + column + done) * conv.depth();
      for (int64_t j = 0; j < count; ++j, from += conv.depth())
        for (int64_t tap = 0; tap < conv.taps; ++tap)
          for (int64_t i = 0; i < conv.inPerGroup; ++i)
            ordered[j * conv.depth() + tap * conv.inPerGroup + i] = from[i * conv.taps + tap];
      ops.pack(ordered, w.type == DType::I8, conv.depth(), count, 1, conv.depth(), to);
    }
    return scratch + state.panels;
  }

  // What the product cannot do itself.
  void finish(const IntegerResult &result, const ResultColumns &parameters, int64_t panel, int64_t from,
              const int16_t *zero) {
    int64_t channel = group * conv.outPerGroup + from;
    int32_t *c = sums + panel * rows * kIntegerColumns;
    bool hasZeros = std::any_of(zero, zero + kIntegerColumns, [](int16_t z) { return z != 0; });
    if (hasZeros && !hasRowSums) {
      for (int64_t r = 0; r < rows; ++r)
        rowSums[r] = ops.rowSum(gathered + r * rowBytes(ops, conv.depth()), conv.depth(), zeros[r]);
      hasRowSums = true;
    }
    if (hasZeros)
      takeOffZeros(c, rows, rowSums, zero);
    if (conv.isChannelsLast)
      return result.store(ops, parameters, c, rows, 0, placeOf(result, channel));
    storeChannelsFirst(result, parameters, c, channel);
  }

  // By way of rows of 16 channels.
  void storeChannelsFirst(const IntegerResult &result, const ResultColumns &parameters, const int32_t *c,
                          int64_t channel) {
    int64_t size = result.elementBytes(), block = rows * kIntegerColumns;
    std::byte *moved = scratch + state.moved;
    auto *added = reinterpret_cast<float *>(moved + block * 4);
    auto each = [&](auto copy) {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < parameters.count; ++j) {
          int64_t n = (first + r) / conv.outPixels(), pixel = (first + r) % conv.outPixels();
          copy((n * conv.outChannels + channel + j) * conv.outPixels() + pixel, r * kIntegerColumns + j);
        }
    };
    if (result.hasResidual())
      each([&](int64_t from, int64_t to) { added[to] = call.in[at.residual].as<float>()[from]; });
    result.store(ops, parameters, c, rows, 0,
                 {moved, result.hasResidual() ? added : nullptr, kIntegerColumns});
    std::byte *y = call.out[0].as<std::byte>();
    each([&](int64_t to, int64_t from) { std::copy_n(moved + from * size, size, y + to * size); });
  }
};

} // namespace

bool acceptsConvInteger(const KernelCall &call) { return call.attrs.s("packed", "") != "depthwise"; }

void prepareConvInteger(const KernelCall &call, KernelWork &work) { prepare(call, work, false); }
void prepareQlinearConv(const KernelCall &call, KernelWork &work) { prepare(call, work, true); }

template <Isa isa>
void runConvInteger(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  TileScope tiles(isa);
  const State &state = work.get<State>();
  const ConvPlan &conv = state.conv;
  const IgemmOps &ops =
      state.isPacked && conv.outChannels > 0
          ? igemmOpsFor(isa,
                        call.in[(state.isQlinear ? kQlinearOperands : kIntegerOperands).b].as<std::byte>(),
                        conv.depth(), conv.batch * conv.outPixels() / std::max<int64_t>(state.grid.rows, 1))
          : igemmOps(isa);
  for (uint32_t index = part.begin; index < part.end; ++index)
    Tile{call, state, ops, part.scratch}.run(index);
}
template void runConvInteger<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvInteger<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvInteger<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvInteger<Isa::Amx>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
