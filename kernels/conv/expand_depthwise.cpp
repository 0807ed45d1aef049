// expand_depthwise: a pointwise convolution and the depthwise one that reads its result, which is never
// written out. Of the expanded image only the rows that the window covers exist, in a ring in scratch that
// stays in the L2 cache:
//
//   tile (image, chunk of channels, band of output rows); bands that follow each other are one
//     for each output row of the band
//       expand the input rows that it needs and the ring lacks     (kernels/matmul/gemm.h)
//       one depthwise row from the ring                            (kernels/conv/depthwise.h)
//
// Both parts do what the two operators do alone, in the same order, so the result is the same to the bit.
// With `expand_packed` bf16 the rows of x are rounded before they are expanded (conv_bf16.h). Bands expand
// the rows at their seams twice, so a thread joins those that it is given together (stride 2, one thread: 15
// % less time); chunks of channels share nothing.
#include "kernels/common/bf16_speed.h"
#include "kernels/common/shares.h"
#include "kernels/common/tiles.h"
#include "kernels/conv/conv_bf16.h"
#include "kernels/conv/conv_f32.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/conv/depthwise.h"
#include "kernels/matmul/gemm_bf16.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr int64_t kRingFloats =
    48 * 1024;                       // 192 KiB: most of an L2 cache of 512 KiB is left to x and the weights
constexpr int64_t kProductRows = 96; // pixels that a product should have, for the weights' sake
constexpr int64_t kLeastChunk = 48;  // channels: fewer would read x too often

struct State {
  ConvPlan conv; // the depthwise one
  Epilogue expand, epilogue;
  int64_t inChannels;
  int64_t chunk, chunks, bands;
  int64_t step, ringRows; // input rows expanded together, and kept
  // Floats from the ring's begin, or -1.
  int64_t copyAt;    // where rows of x are gathered, unless they are read where they lie
  int64_t roundedAt; // where they are rounded to bf16
  int64_t partsAt;   // what tiles ask for

  int64_t depth() const {
    return roundedAt < 0 ? inChannels : ceilOf(inChannels, 2);
  } // of x's rows, as multiplied
};
static_assert(sizeof(State) <= 512);

constexpr size_t kPointers = 2 * kMaxTileRows;

int64_t extentOf(const ConvPlan &conv) { return (conv.kernel[1] - 1) * conv.dilation[1] + 1; }

// At least so many chunks, if there are panels for them.
void cutChannels(State &state, int64_t chunks) {
  int64_t channels = std::max<int64_t>(state.conv.outChannels, 1);
  state.chunk = ceilOf(ceilOf(channels, std::max(chunks, state.chunks)), kPanel) * kPanel;
  state.chunks = ceilOf(channels, state.chunk);
}

void planRing(State &state) {
  const ConvPlan &conv = state.conv;
  int64_t width = std::max<int64_t>(conv.in[2], 1), channels = std::max<int64_t>(conv.outChannels, 1);
  state.step = std::clamp<int64_t>(ceilOf(kProductRows, width), 1, std::max<int64_t>(conv.in[1], 1));
  state.ringRows = extentOf(conv) + state.step - 1 + (takesTwoRows(Isa::Avx512, conv) ? conv.stride[1] : 0);
  int64_t room = std::max(kRingFloats / (state.ringRows * width) / kPanel, int64_t(1)) * kPanel;
  state.chunks = 1;
  cutChannels(state, ceilOf(channels, room));
}

// The work of `count` tiles that follow each other.
class Band {
public:
  Band(const KernelCall &call, const State &state, Isa isa, const Bf16GemmOps *bf16, const KernelPart &part,
       uint32_t tile, int64_t count)
      : call(call), s(state), conv(state.conv), bf16(bf16), multiply(bf16 ? bf16->tile : gemmOps(isa).tile),
        isa(std::min(isa, std::min(machineIsa(), Isa::Avx512))), depthwise(depthwiseRow(this->isa)),
        pointers(reinterpret_cast<const float **>(part.scratch)),
        ring(reinterpret_cast<float *>(part.scratch + kPointers * sizeof(float *))) {
    int64_t band = tile % s.bands;
    channel = tile / s.bands % s.chunks * s.chunk;
    channels = std::min(s.chunk, conv.outChannels - channel);
    image = tile / s.bands / s.chunks;
    begin = conv.out[1] * band / s.bands;
    end = conv.out[1] * (band + count) / s.bands;
  }

  void run() {
    int64_t next = std::max<int64_t>(firstOf(begin), 0), last = lastOf(end - 1);
    for (int64_t row = begin, rows; row < end; row += rows) {
      rows = takesTwoRows(isa, conv) && row + 1 < end && firstOf(row) >= 0 &&
                     lastOf(row) + conv.stride[1] < conv.in[1]
                 ? 2
                 : 1;
      while (next <= lastOf(row + rows - 1)) {
        int64_t count = std::min(s.step, last + 1 - next);
        expand(next, count);
        next += count;
      }
      outputRows(row, rows);
    }
  }

private:
  // Input rows that an output row reads; the first may lie outside.
  int64_t firstOf(int64_t row) const { return row * conv.stride[1] - conv.pad[1]; }
  int64_t lastOf(int64_t row) const { return std::min(firstOf(row) + extentOf(conv), conv.in[1]) - 1; }
  float *ringRow(int64_t row) const { return ring + row % s.ringRows * conv.in[2] * s.chunk; }

  // Rows [first, first + count) of the image, into the ring.
  void expand(int64_t first, int64_t count) const {
    int64_t width = conv.in[2], pixels = count * width;
    const float *x = call.in[0].as<float>() + (image * conv.in[1] + first) * width * s.inChannels;
    float *c[kMaxTileRows];
    GemmTile tile = {};
    tile.a = pointers;
    tile.c = c;
    tile.taps = 1;
    tile.depth = s.depth();
    tile.panelStride = s.depth() * kPanel;
    tile.b = call.in[1].as<float>() + channel * s.depth();
    tile.columns = channels;
    tile.bias = call.has(2) ? call.in[2].as<float>() + channel : nullptr;
    tile.epilogue = s.expand;
    tile.copy = s.copyAt < 0 ? nullptr : ring + s.copyAt;
    tile.parts = s.partsAt < 0 ? nullptr : reinterpret_cast<uint16_t *>(ring + s.partsAt);
    int64_t row = first, column = 0, from = 0;
    for (int64_t tiles = ceilOf(pixels, kMaxTileRows), t = 0; t < tiles; ++t) {
      int64_t to = pixels * (t + 1) / tiles;
      tile.rows = tile.aStride = to - from;
      const float *a = x + from * s.inChannels;
      if (bf16) {
        bf16->round(a, tile.rows, s.inChannels, reinterpret_cast<uint16_t *>(ring + s.roundedAt));
        a = ring + s.roundedAt;
      }
      for (int64_t p = from; p < to; row += column == 0) {
        float *y = ringRow(row) + column * s.chunk;
        int64_t run = std::min(width - column, to - p);
        column = (column + run) % width;
        for (int64_t end = p + run; p < end; ++p, y += s.chunk) {
          pointers[p - from] = a + (p - from) * s.depth();
          c[p - from] = y;
        }
      }
      from = to;
      multiply(tile);
    }
  }

  void outputRows(int64_t index, int64_t rows) const {
    DepthwiseRow row = depthwiseRowOf(conv);
    const float **lines = pointers, **weights = pointers + kMaxTileRows;
    for (int64_t k = 0; k < conv.kernel[1]; ++k) {
      int64_t from = firstOf(index) + k * conv.dilation[1];
      if (from < 0 || from >= conv.in[1])
        continue;
      lines[row.count] = ringRow(from);
      weights[row.count++] = call.in[3].as<float>() + k * conv.kernel[2] * conv.outChannels + channel;
    }
    if (rows == 2) {
      for (int64_t i = 0; i < conv.stride[1]; ++i)
        lines[row.count + i] = ringRow(lastOf(index) + 1 + i);
      row.nextRow = conv.out[2] * conv.outChannels;
    }
    row.lines = lines;
    row.w = weights;
    row.channels = channels;
    row.lineStep = s.chunk;
    row.bias = call.has(4) ? call.in[4].as<float>() + channel : nullptr;
    row.y =
        call.out[0].as<float>() + (image * conv.out[1] + index) * conv.out[2] * conv.outChannels + channel;
    row.epilogue = s.epilogue;
    depthwise(row);
  }

  const KernelCall &call;
  const State &s;
  const ConvPlan &conv;
  const Bf16GemmOps *bf16; // or null
  void (*multiply)(const GemmTile &);
  Isa isa; // of the depthwise part
  void (*depthwise)(const DepthwiseRow &);
  const float **pointers;
  float *ring;
  int64_t image, begin, end, channel, channels;
};

bool isExpandInBf16(const KernelCall &call) { return call.attrs.s("expand_packed", "") == "bf16"; }

void prepare(const KernelCall &call, KernelWork &work, bool hasTiles) {
  State &state = work.make<State>();
  ConvPlan &conv = state.conv;
  conv.read(call, 3, false);
  state.inChannels = conv.inChannels;
  conv.inChannels = conv.outChannels;
  conv.inPerGroup = conv.outPerGroup = 1;
  state.epilogue.read(call.attrs);
  state.expand.read(call.attrs, "expand_");
  planRing(state);

  double expansion =
      2.0 * double(conv.batch * conv.inPixels()) * double(state.inChannels) * double(conv.outChannels);
  work.flops = expansion + conv.flops();
  work.bytes =
      4.0 * (double(call.in[0].elements()) + double(call.in[1].elements()) + double(call.out[0].elements()));
  // Enough tiles for many threads: chunks share nothing, and a band has rows enough that its seams weigh
  // little.
  int64_t wanted = std::clamp<int64_t>(int64_t(work.flops / 200e3), 1, 32);
  int64_t chunks = std::min(ceilOf(wanted, std::max<int64_t>(conv.batch, 1)), conv.outChannels / kLeastChunk);
  cutChannels(state, evenParts(chunks));
  int64_t seams = std::max<int64_t>(extentOf(conv) - conv.stride[1], 1);
  state.bands = std::clamp<int64_t>(wanted / std::max<int64_t>(state.chunks * conv.batch, 1), 1,
                                    std::max<int64_t>(conv.in[1] / (8 * seams), 1));
  state.bands = state.chunks % 2 == 0 ? state.bands : evenParts(state.bands);
  work.tiles[0] = uint32_t(std::min<int64_t>(conv.batch * state.bands * state.chunks, UINT32_MAX));
  int64_t floats = state.ringRows * conv.in[2] * state.chunk;
  auto place = [&](bool isNeeded, int64_t size) { return isNeeded ? takeFloats(floats, size) : -1; };
  bool isBf16 = isExpandInBf16(call);
  state.copyAt = place(state.inChannels > kBlockTerms, kGemmCopyFloats);
  state.roundedAt = place(isBf16, kMaxTileRows * ceilOf(state.inChannels, 2));
  state.partsAt = place(hasTiles, kGemmPartElements / 2);
  work.scratchPerThread = kPointers * sizeof(float *) + size_t(floats) * sizeof(float);
}

void run(const KernelCall &call, const KernelWork &work, const KernelPart &part, Isa isa,
         const Bf16GemmOps *bf16) {
  const State &state = work.get<State>();
  for (uint32_t tile = part.begin, count; tile < part.end; tile += count) {
    count = std::min(uint32_t(state.bands - tile % state.bands), part.end - tile);
    Band(call, state, isa, bf16, part, tile, count).run();
  }
}

} // namespace

bool acceptsExpandF32(const KernelCall &call) { return !isExpandInBf16(call); }
bool acceptsExpandBf16(const KernelCall &call) { return isExpandInBf16(call); }
bool acceptsExpandBf16Dots(const KernelCall &call) { return isExpandInBf16(call) && multipliesBf16(); }
void prepareExpandDepthwise(const KernelCall &call, KernelWork &work) { prepare(call, work, false); }
void prepareExpandTiles(const KernelCall &call, KernelWork &work) { prepare(call, work, true); }

template <Isa isa>
void runExpandDepthwise(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  run(call, work, part, isa, nullptr);
}
template <Isa isa>
void runExpandBf16(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  TileScope tiles(isa);
  run(call, work, part, isa, &bf16GemmOps(isa));
}
void runExpandBf16Dots(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  run(call, work, part, Isa::Avx512, &bf16GemmOpsAvx512Bf16);
}
template void runExpandBf16<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runExpandBf16<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runExpandBf16<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runExpandBf16<Isa::Amx>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runExpandDepthwise<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runExpandDepthwise<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runExpandDepthwise<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
