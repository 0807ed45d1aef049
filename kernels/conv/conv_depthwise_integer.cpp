// Depthwise qlinear_conv with channels last. Tiles are ranges of output rows; a tile widens the weights of
// all channels once, then goes through its rows, block by block of channels. Padding is a row of zero points,
// so that taking the zero point off is one number per channel: zero times the sum of its weights.
#include "kernels/common/shares.h"
#include "kernels/conv/conv_depthwise_columns.h"
#include "kernels/conv/conv_integer.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/conv/qdepthwise.h"
#include "kernels/matmul/integer_result.h"
#include <algorithm>
#include <cstring>

namespace dspark {
namespace {

struct State {
  ConvPlan conv;
  int64_t tiles, pairs, blocks;
  // Offsets into a thread's scratch; the table of taps comes first.
  int64_t weights, start, padding, columns;
};
static_assert(sizeof(State) <= 512);

// The first channel of a block. The last one begins earlier where channels do not fill it, and computes some
// of them a second time.
int64_t blockAt(const ConvPlan &conv, int64_t block) {
  return std::max<int64_t>(std::min(block * kDepthwiseChannels, conv.outChannels - kDepthwiseChannels), 0);
}

// One tile's operands and scratch.
struct Tile {
  const KernelCall &call;
  const State &state;
  Isa isa;
  std::byte *scratch;

  const ConvPlan &conv = state.conv;
  const QDepthwiseOps &ops = qdepthwiseOps(isa);
  const std::byte **table = reinterpret_cast<const std::byte **>(scratch);
  int16_t *weights = reinterpret_cast<int16_t *>(scratch + state.weights);
  int32_t *start = reinterpret_cast<int32_t *>(scratch + state.start);
  std::byte *padding = scratch + state.padding;
  ResultColumns *columns = reinterpret_cast<ResultColumns *>(scratch + state.columns); // per block
  int64_t channels = std::min(conv.outChannels, kDepthwiseChannels);                   // of a block
  bool isSigned = call.in[0].type == DType::I8;
  IntegerResult result = IntegerResult(call, kQlinearOperands);

  int16_t *blockWeights(int64_t block) const {
    return weights + block * state.pairs * 2 * kDepthwiseChannels;
  }

  // Weights and what else is the same for all pixels.
  void startBlocks() {
    const TensorView &w = call.in[3];
    PanelZeros zeros(w, call.in[5]);
    std::memset(padding, zeroAt(call.in[2], 0), size_t(conv.outChannels));
    std::fill_n(table, 2 * state.pairs, padding);
    for (int64_t block = 0; block < state.blocks; ++block) {
      int64_t c = blockAt(conv, block);
      int16_t zero[kIntegerColumns];
      zeros.read(c, channels, zero);
      ops.widen(w.as<int8_t>() + c, conv.taps, conv.outChannels, channels, zero, blockWeights(block));
      // What a pixel of zero points only would sum to is taken off.
      int32_t *from = start + block * kDepthwiseChannels, sums[kDepthwiseChannels];
      std::fill_n(from, kDepthwiseChannels, 0);
      ops.row(rowOf(block, 1, false, sums, nullptr));
      for (int64_t j = 0; j < kDepthwiseChannels; ++j)
        from[j] = -sums[j];
      result.read(c, channels, *new (columns + block) ResultColumns);
    }
  }

  // Outputs that follow each other. Where all taps lie inside, the first one's taps serve all.
  QDepthwiseRow rowOf(int64_t block, int64_t pixels, bool isInner, int32_t *sums,
                      const SumsResult *result) const {
    return {table,
            isInner ? 0 : 2 * state.pairs,
            isInner ? conv.stride[2] * conv.inChannels : 0,
            pixels,
            state.pairs,
            blockAt(conv, block),
            channels,
            isSigned,
            blockWeights(block),
            start + block * kDepthwiseChannels,
            sums,
            result};
  }

  // Whether all taps of output coordinate o lie inside the image along one axis.
  bool isInside(int axis, int64_t o) const {
    int64_t first = o * conv.stride[axis] - conv.pad[axis];
    return first >= 0 && first + (conv.kernel[axis] - 1) * conv.dilation[axis] < conv.in[axis];
  }

  // Input pixels that outputs [o2, end) of a row read, tap by tap; an odd number of taps is filled up.
  void findTaps(const std::byte *image, int64_t o0, int64_t o1, int64_t o2, int64_t end) {
    const std::byte **to = table;
    for (; o2 < end; ++o2) {
      for (int64_t k0 = 0; k0 < conv.kernel[0]; ++k0)
        for (int64_t k1 = 0; k1 < conv.kernel[1]; ++k1) {
          int64_t i0 = o0 * conv.stride[0] - conv.pad[0] + k0 * conv.dilation[0];
          int64_t i1 = o1 * conv.stride[1] - conv.pad[1] + k1 * conv.dilation[1];
          bool isLine = i0 >= 0 && i0 < conv.in[0] && i1 >= 0 && i1 < conv.in[1];
          int64_t i2 = o2 * conv.stride[2] - conv.pad[2];
          for (int64_t k2 = 0; k2 < conv.kernel[2]; ++k2, i2 += conv.dilation[2])
            *to++ = isLine && i2 >= 0 && i2 < conv.in[2]
                        ? image + ((i0 * conv.in[1] + i1) * conv.in[2] + i2) * conv.inChannels
                        : padding;
        }
      if (conv.taps % 2 != 0)
        *to++ = padding;
    }
  }

  // Outputs [begin, end) of row `index`.
  struct Piece {
    int64_t begin, end;
    bool isInner;
  };
  void runPiece(int64_t index, const Piece &piece) {
    int64_t o1 = index % conv.out[1], o0 = index / conv.out[1] % conv.out[0],
            n = index / (conv.out[1] * conv.out[0]);
    if (piece.begin >= piece.end)
      return;
    findTaps(call.in[0].as<std::byte>() + n * conv.inPixels() * conv.inChannels, o0, o1, piece.begin,
             piece.isInner ? piece.begin + 1 : piece.end);
    if (piece.isInner && conv.taps % 2 != 0)
      table[conv.taps] = table[0]; // its weight is 0, but it moves on with the others
    int64_t pixels = piece.end - piece.begin;
    for (int64_t block = 0; block < state.blocks; ++block) {
      int64_t at = (index * conv.out[2] + piece.begin) * conv.outChannels + blockAt(conv, block);
      SumsResult to = result.result(columns[block], pixels, result.at(at, conv.outChannels));
      ops.row(rowOf(block, pixels, piece.isInner, nullptr, &to));
    }
  }

  void runRow(int64_t index) {
    int64_t begin = 0, end = 0; // outputs whose taps all lie inside
    if (isInside(0, index / conv.out[1] % conv.out[0]) && isInside(1, index % conv.out[1])) {
      while (begin < conv.out[2] && !isInside(2, begin))
        ++begin;
      for (end = begin; end < conv.out[2] && isInside(2, end);)
        ++end;
    }
    runPiece(index, {0, begin, false});
    runPiece(index, {begin, end, true});
    runPiece(index, {end, conv.out[2], false});
  }

  void run(int64_t index) {
    int64_t rows = conv.batch * conv.out[0] * conv.out[1];
    int64_t first = rows * index / state.tiles, end = rows * (index + 1) / state.tiles;
    if (first >= end || conv.out[2] == 0 || channels == 0)
      return;
    if (goesByColumns() && runByColumns(first, end))
      return;
    startBlocks();
    for (int64_t r = first; r < end; ++r)
      runRow(r);
  }

  bool runByColumns(int64_t first, int64_t end) const {
    const DepthwiseColumns byColumns(call, conv, ops, scratch);
    for (int64_t r = first; byColumns.fits() && r < end; ++r)
      byColumns.runRow(r);
    return byColumns.fits();
  }
  bool goesByColumns() const {
    if (!ops.columns || !DepthwiseColumns::suits(conv))
      return false;
    PanelZeros zeros(call.in[3], call.in[5]);
    int16_t zero[kIntegerColumns];
    for (int64_t c = 0; c < conv.outChannels; c += kIntegerColumns)
      if (zeros.read(c, std::min(conv.outChannels - c, kIntegerColumns), zero))
        return false;
    return true;
  }
};

} // namespace

bool acceptsQlinearDepthwise(const KernelCall &call) { return call.attrs.s("packed", "") == "depthwise"; }

void prepareQlinearDepthwise(const KernelCall &call, KernelWork &work) {
  State &state = work.make<State>();
  ConvPlan &conv = state.conv;
  conv.read(call, 3, false);
  state.pairs = (conv.taps + 1) / 2;
  state.blocks = (conv.outChannels + kDepthwiseChannels - 1) / kDepthwiseChannels;
  int64_t used = 0;
  auto take = [&](int64_t bytes) { return takeBytes(used, bytes); };
  take(std::max<int64_t>(conv.out[2], 1) * state.pairs * 2 * 8);
  state.weights = take(state.blocks * state.pairs * 2 * kDepthwiseChannels * 2);
  state.start = take(state.blocks * kDepthwiseChannels * 4);
  state.padding = take(conv.outChannels);
  state.columns = take(state.blocks * int64_t(sizeof(ResultColumns)));
  if (DepthwiseColumns::suits(conv))
    used = std::max(used, DepthwiseColumns::scratchBytes(conv));
  work.scratchPerThread = size_t(used);
  int64_t rows = std::max<int64_t>(conv.batch * conv.out[0] * conv.out[1], 1);
  // What a tile starts with takes some microseconds.
  double tileFlops = DepthwiseColumns::suits(conv) ? 1e6 : 200e3;
  state.tiles = evenParts(std::min(std::clamp<int64_t>(int64_t(conv.flops() / tileFlops), 1, 32), rows));
  work.tiles[0] = uint32_t(state.tiles);
  work.flops = conv.flops();
  work.bytes = double(call.in[0].elements()) + double(call.in[3].elements()) +
               double(call.out[0].elements()) * dtypeBits(call.out[0].type) / 8;
}

template <Isa isa>
void runQlinearDepthwise(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  for (uint32_t index = part.begin; index < part.end; ++index)
    Tile{call, work.get<State>(), isa, part.scratch}.run(index);
}
template void runQlinearDepthwise<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runQlinearDepthwise<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runQlinearDepthwise<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
