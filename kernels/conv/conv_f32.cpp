// Convolution as a product (kernels/matmul/gemm.h): output pixels are rows, (tap, input channel) is the sum,
// output channels are columns. Nothing is copied: the product reads the input where it lies, by one address
// per pixel and tap.
#include "kernels/conv/conv_f32.h"
#include "kernels/common/shares.h"
#include "kernels/common/tiles.h"
#include "kernels/conv/conv_phases.h"
#include "kernels/conv/conv_taps.h"
#include "kernels/matmul/gemm.h"
#include "kernels/matmul/matmul_plan.h"
#include <algorithm>

namespace dspark {
namespace {

struct State {
  ConvPlan conv;
  ConvPhases phases;
  ConvRows rows;
  Epilogue epilogue;
  int64_t classes[3]; // per axis; 1 unless transposed
  TileGrid grid;      // per class and group
  // Offsets into a thread's scratch, in bytes.
  int64_t table, tapOffset, axisLists, pixels, zeros, edges, copy, parts;
};
static_assert(sizeof(State) <= 512);

void planScratch(State &state, KernelWork &work, bool hasTiles) {
  const ConvPlan &conv = state.conv;
  const ConvRows &rows = state.rows;
  int64_t used = 0;
  state.table = takeBytes(used, rows.maxTaps * rows.maxRows * 8);
  state.tapOffset = takeBytes(used, rows.maxTaps * 8);
  state.axisLists = takeBytes(used, (conv.kernel[0] + conv.kernel[1] + conv.kernel[2]) * 2 * 8);
  state.pixels = takeBytes(used, rows.maxRows * 8);
  state.zeros = takeBytes(used, rows.depth * 4);
  state.edges = takeBytes(used, rows.joinsTaps ? rows.maxRows * rows.maxTaps * rows.depth * 4 : 0);
  state.copy = rows.maxTaps == 1 && rows.depth > kBlockTerms ? takeBytes(used, kGemmCopyFloats * 4) : -1;
  state.parts = hasTiles ? takeBytes(used, kGemmPartElements * 2) : -1;
  work.scratchPerThread = size_t(used);
}

void prepare(const KernelCall &call, KernelWork &work, bool isTransposed, bool hasTiles = false) {
  State &state = work.make<State>();
  ConvPlan &conv = state.conv;
  conv.read(call, 1, isTransposed);
  state.epilogue.read(call.attrs);
  state.rows.plan(conv);
  int64_t classes = 1, outputs = conv.batch;
  for (int i = 0; i < 3; ++i) {
    state.classes[i] = isTransposed ? std::max<int64_t>(std::min(conv.stride[i], conv.out[i]), 1) : 1;
    classes *= state.classes[i];
    outputs *= isTransposed ? (conv.out[i] + conv.stride[i] - 1) / conv.stride[i] : conv.out[i];
  }
  state.grid = cutProduct(outputs, conv.outPerGroup, std::max<int64_t>(conv.depth() / classes, 1),
                          classes * conv.group, state.rows.maxRows);
  int64_t tiles = classes * conv.group * state.grid.rows * state.grid.columns;
  state.phases.plan(call, conv, false, uint32_t(std::min<int64_t>(tiles, UINT32_MAX)), work);
  planScratch(state, work, hasTiles);
}

// Which class, group, outputs and panels a tile stands for.
struct Share {
  int64_t residue[3], group;
  TileGrid::Place at;
};
Share shareOf(const State &state, uint32_t tile) {
  Share share;
  int64_t rest = tile;
  auto next = [&](int64_t count) {
    int64_t index = rest % count;
    rest /= count;
    return index;
  };
  share.at = state.grid.place(next(state.grid.rows * state.grid.columns));
  share.group = next(state.conv.group);
  for (int i = 2; i >= 0; --i)
    share.residue[i] = next(state.classes[i]);
  return share;
}

// The tile and those that lie beside it.
void runTile(const KernelCall &call, const State &state, const GemmOps &ops, const KernelPart &part,
             uint32_t index, int64_t sideBySide) {
  const ConvPlan &conv = state.conv;
  Share share = shareOf(state, index);
  std::byte *scratch = part.scratch;
  auto at = [&]<typename T>(int64_t offset, T *) { return reinterpret_cast<T *>(scratch + offset); };
  int64_t *lists = at(state.axisLists, static_cast<int64_t *>(nullptr));
  ConvGather gather;
  gather.conv = &conv;
  for (int i = 0; i < 3; ++i) {
    gather.axis[i].read(conv, i, share.residue[i], lists, lists + conv.kernel[i]);
    lists += 2 * conv.kernel[i];
  }
  int64_t outputs = gather.outputsOfClass();
  int64_t first = outputs * share.at.row / state.grid.rows,
          count = outputs * (share.at.row + 1) / state.grid.rows - first;
  int64_t panels = (conv.outPerGroup + kPanel - 1) / kPanel;
  int64_t column = panels * share.at.column / state.grid.columns * kPanel;
  int64_t end =
      std::min(panels * (share.at.column + sideBySide) / state.grid.columns * kPanel, conv.outPerGroup);
  if (count <= 0 || end <= column)
    return;

  float *zeros = at(state.zeros, static_cast<float *>(nullptr));
  std::fill(zeros, zeros + state.rows.depth, 0.0f);
  gather.zeros = zeros;
  gather.edges = at(state.edges, static_cast<float *>(nullptr));
  gather.x = state.phases.x(call, part) + share.group * conv.inPerGroup;
  const float **a = at(state.table, static_cast<const float **>(nullptr));
  int64_t *tapOffset = at(state.tapOffset, static_cast<int64_t *>(nullptr));
  int64_t *pixels = at(state.pixels, static_cast<int64_t *>(nullptr));
  GemmTile tile = {};
  tile.taps = gather.gather(state.rows, first, count, a, tapOffset, pixels);

  float *c[kMaxTileRows];
  int64_t channel = share.group * conv.outPerGroup + column;
  for (int64_t r = 0; r < count; ++r)
    c[r] = state.phases.y(call, part) + pixels[r] * conv.outChannels + channel;
  tile.a = a;
  tile.aStride = count;
  tile.c = c;
  tile.rows = count;
  tile.depth = state.rows.depth;
  tile.panelStride = conv.depth() * kPanel;
  tile.b = state.phases.w(call, part) + (share.group * panels + column / kPanel) * tile.panelStride;
  tile.tapOffset = tapOffset;
  tile.columns = end - column;
  tile.bias = call.has(2) ? call.in[2].as<float>() + channel : nullptr;
  const float *residual = state.phases.residual(call, part);
  tile.residual = residual ? residual + pixels[0] * conv.outChannels + channel : nullptr;
  tile.epilogue = state.epilogue;
  tile.copy = state.copy < 0 ? nullptr : at(state.copy, static_cast<float *>(nullptr));
  tile.parts = state.parts < 0 ? nullptr : at(state.parts, static_cast<uint16_t *>(nullptr));
  ops.tile(tile);
}

} // namespace

bool acceptsConvF32(const KernelCall &call) {
  return call.in[0].type == DType::F32 && call.attrs.s("packed", "") != "depthwise";
}

bool acceptsConvTiles(const KernelCall &call) {
  if (!acceptsConvF32(call) || acceptsConvWinograd(call) || acceptsConvLine(call))
    return false;
  constexpr int64_t kFewestPixels = 64, kFewestTerms = 64, kFewestColumns = 32;
  ConvPlan conv;
  conv.read(call, 1, false);
  return conv.outPixels() >= kFewestPixels && conv.depth() >= kFewestTerms &&
         conv.outPerGroup >= kFewestColumns;
}

void prepareConvTiles(const KernelCall &call, KernelWork &work) { prepare(call, work, false, true); }
void prepareConvF32(const KernelCall &call, KernelWork &work) { prepare(call, work, false); }
void prepareConvTransposeF32(const KernelCall &call, KernelWork &work) { prepare(call, work, true); }

template <Isa isa> void runConvF32(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  if (state.phases.runArrangement(call, state.conv, work, part))
    return;
  TileScope tiles(isa);
  state.grid.forEachRun(part.begin, part.end, [&](uint32_t tile, int64_t sideBySide) {
    runTile(call, state, gemmOps(isa), part, tile, sideBySide);
  });
}
template void runConvF32<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvF32<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvF32<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runConvF32<Isa::Amx>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
