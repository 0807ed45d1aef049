// Integer convolution: the taps of a block of output pixels are gathered as 16-bit rows (padding is 0, since
// zero points are taken off), and multiplied with panels of 16 output channels.
#include "kernels/conv/conv_integer.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/matmul/igemm.h"
#include "kernels/matmul/matmul_plan.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr size_t kAbsent = 99;
struct Operands {
  size_t xScale, xZero, w, wScale, wZero, yScale, yZero, bias;
};
constexpr Operands kInteger = {kAbsent, 2, 1, kAbsent, 3, kAbsent, kAbsent, kAbsent},
                   kQlinear = {1, 2, 3, 4, 5, 6, 7, 8};

struct State {
  ConvPlan conv;
  bool isQlinear;
  TileGrid grid; // per group
  int64_t pairs, panelAt, sumsAt;
};
static_assert(sizeof(State) <= 512);

int64_t roundUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

void prepare(const KernelCall &call, KernelWork &work, bool isQlinear) {
  State &state = work.make<State>();
  ConvPlan &conv = state.conv;
  state.isQlinear = isQlinear;
  conv.read(call, (isQlinear ? kQlinear : kInteger).w, false);
  state.pairs = (conv.depth() + 1) / 2;
  int64_t pixels = conv.batch * conv.outPixels();
  int64_t maxRows = std::clamp<int64_t>(64 * 1024 / std::max<int64_t>(conv.depth(), 1), 12, kIntegerRows);
  state.grid = cutProduct(pixels, conv.outPerGroup, conv.depth(), conv.group, maxRows);
  int64_t rows = pixels / state.grid.rows + 1;
  state.panelAt = roundUp(rows * state.pairs * 4);
  state.sumsAt = state.panelAt + roundUp(state.pairs * 64);
  work.scratchPerThread = size_t(state.sumsAt + rows * 64);
  work.tiles[0] = uint32_t(std::min<int64_t>(conv.group * state.grid.rows * state.grid.columns, UINT32_MAX));
  work.flops = conv.flops();
  work.bytes = double(call.in[0].elements()) + double(conv.outChannels * conv.depth()) +
               double(call.out[0].elements()) * (isQlinear ? 1 : 4);
}

// Entry of a zero point or scale with one value for all or one per channel.
int32_t zeroAt(const TensorView &t, int64_t i) {
  if (!t.present() || t.elements() == 0)
    return 0;
  i = t.elements() == 1 ? 0 : i;
  return t.type == DType::I8 ? t.as<int8_t>()[i] : t.as<uint8_t>()[i];
}
float scaleAt(const TensorView &t, int64_t i) {
  return t.elements() == 0 ? 1.0f : t.as<float>()[t.elements() == 1 ? 0 : i];
}

// The taps of output pixel `index` of group g, as the weights order them: (input channel, tap).
template <typename T>
void gatherRow(const ConvPlan &conv, const T *x, int64_t g, int64_t index, int32_t zero, int16_t *row) {
  int64_t o2 = index % conv.out[2], o1 = index / conv.out[2] % conv.out[1];
  int64_t o0 = index / (conv.out[2] * conv.out[1]) % conv.out[0], n = index / conv.outPixels();
  int64_t pixelStep = conv.isChannelsLast ? conv.inChannels : 1;
  int64_t channelStep = conv.isChannelsLast ? 1 : conv.inPixels();
  for (int64_t k0 = 0, tap = 0; k0 < conv.kernel[0]; ++k0)
    for (int64_t k1 = 0; k1 < conv.kernel[1]; ++k1)
      for (int64_t k2 = 0; k2 < conv.kernel[2]; ++k2, ++tap) {
        int64_t i0 = o0 * conv.stride[0] - conv.pad[0] + k0 * conv.dilation[0];
        int64_t i1 = o1 * conv.stride[1] - conv.pad[1] + k1 * conv.dilation[1];
        int64_t i2 = o2 * conv.stride[2] - conv.pad[2] + k2 * conv.dilation[2];
        bool isInside =
            i0 >= 0 && i0 < conv.in[0] && i1 >= 0 && i1 < conv.in[1] && i2 >= 0 && i2 < conv.in[2];
        const T *from = x + n * conv.inChannels * conv.inPixels() + g * conv.inPerGroup * channelStep;
        if (isInside)
          from += ((i0 * conv.in[1] + i1) * conv.in[2] + i2) * pixelStep;
        for (int64_t i = 0; i < conv.inPerGroup; ++i)
          row[i * conv.taps + tap] = isInside ? int16_t(from[i * channelStep] - zero) : int16_t(0);
      }
  if (conv.depth() % 2 != 0)
    row[conv.depth()] = 0;
}

void storeSums(const KernelCall &call, const State &state, int64_t pixel, int64_t rows, int64_t channel,
               int64_t columns, const int32_t *sums) {
  const ConvPlan &conv = state.conv;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < columns; ++j) {
      int64_t n = (pixel + r) / conv.outPixels(), p = (pixel + r) % conv.outPixels(), o = channel + j;
      int64_t at = conv.isChannelsLast ? (pixel + r) * conv.outChannels + o
                                       : (n * conv.outChannels + o) * conv.outPixels() + p;
      int32_t sum = sums[r * 16 + j];
      if (!state.isQlinear) {
        call.out[0].as<int32_t>()[at] = sum;
        continue;
      }
      if (call.has(kQlinear.bias))
        sum = int32_t(uint32_t(sum) + uint32_t(call.in[kQlinear.bias].as<int32_t>()[o]));
      float scale = scaleAt(call.in[kQlinear.xScale], 0) * scaleAt(call.in[kQlinear.wScale], o) /
                    scaleAt(call.in[kQlinear.yScale], 0);
      Requantize requantize = {scale, zeroAt(call.in[kQlinear.yZero], 0), call.out[0].type == DType::I8};
      call.out[0].as<uint8_t>()[at] = requantize(sum);
    }
}

void runTile(const KernelCall &call, const State &state, const IgemmOps &ops, uint32_t tile,
             std::byte *scratch) {
  const ConvPlan &conv = state.conv;
  const Operands &at = state.isQlinear ? kQlinear : kInteger;
  const TensorView &x = call.in[0], &w = call.in[at.w];
  int64_t column = tile % state.grid.columns, rest = tile / state.grid.columns;
  int64_t row = rest % state.grid.rows, g = rest / state.grid.rows;
  int64_t pixels = conv.batch * conv.outPixels(), panels = (conv.outPerGroup + 15) / 16;
  int64_t first = pixels * row / state.grid.rows, rows = pixels * (row + 1) / state.grid.rows - first;

  int16_t *gathered = reinterpret_cast<int16_t *>(scratch),
          *panel = reinterpret_cast<int16_t *>(scratch + state.panelAt);
  int32_t *sums = reinterpret_cast<int32_t *>(scratch + state.sumsAt);
  int32_t xZero = zeroAt(call.input(at.xZero), 0);
  for (int64_t r = 0; r < rows; ++r)
    if (x.type == DType::I8)
      gatherRow(conv, x.as<int8_t>(), g, first + r, xZero, gathered + r * state.pairs * 2);
    else
      gatherRow(conv, x.as<uint8_t>(), g, first + r, xZero, gathered + r * state.pairs * 2);
  int64_t end = std::min(panels * (column + 1) / state.grid.columns * 16, conv.outPerGroup);
  for (int64_t from = panels * column / state.grid.columns * 16; from < end; from += 16) {
    int64_t columns = std::min<int64_t>(16, end - from), channel = g * conv.outPerGroup + from;
    int16_t zero[16] = {};
    for (int64_t j = 0; j < columns; ++j)
      zero[j] = int16_t(zeroAt(call.input(at.wZero), channel + j));
    ops.pack(w.as<int8_t>() + channel * conv.depth(), w.type == DType::I8, conv.depth(), columns, 1,
             conv.depth(), zero, panel);
    ops.tile({gathered, rows, state.pairs, panel, sums});
    storeSums(call, state, first, rows, channel, columns, sums);
  }
}

} // namespace

void prepareConvInteger(const KernelCall &call, KernelWork &work) { prepare(call, work, false); }
void prepareQlinearConv(const KernelCall &call, KernelWork &work) { prepare(call, work, true); }

template <Isa isa>
void runConvInteger(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  for (uint32_t tile = part.begin; tile < part.end; ++tile)
    runTile(call, work.get<State>(), igemmOps(isa), tile, part.scratch);
}
template void runConvInteger<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvInteger<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvInteger<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
