#include "kernels/conv/conv_product.h"
#include "kernels/common/shares.h"
#include <algorithm>

namespace dspark {

uint32_t ConvProduct::plan(const KernelCall &call, bool hasTiles, KernelWork &work) {
  epilogue.read(call.attrs);
  rows.plan(conv);
  int64_t allClasses = 1, outputs = conv.batch;
  for (int i = 0; i < 3; ++i) {
    classes[i] = conv.isTransposed ? std::max<int64_t>(std::min(conv.stride[i], conv.out[i]), 1) : 1;
    allClasses *= classes[i];
    outputs *= conv.isTransposed ? (conv.out[i] + conv.stride[i] - 1) / conv.stride[i] : conv.out[i];
  }
  grid = cutProduct(outputs, conv.outPerGroup, std::max<int64_t>(conv.depth() / allClasses, 1),
                    allClasses * conv.group, rows.maxRows);
  int64_t used = 0;
  table = takeBytes(used, rows.maxTaps * rows.maxRows * 8);
  tapOffset = takeBytes(used, rows.maxTaps * 8);
  axisLists = takeBytes(used, (conv.kernel[0] + conv.kernel[1] + conv.kernel[2]) * 2 * 8);
  pixels = takeBytes(used, rows.maxRows * 8);
  zeros = takeBytes(used, rows.depth * 4);
  edges = takeBytes(used, rows.joinsTaps ? rows.maxRows * rows.maxTaps * rows.depth * 4 : 0);
  copy = rows.maxTaps == 1 && rows.depth > kBlockTerms ? takeBytes(used, kGemmCopyFloats * 4) : -1;
  parts = hasTiles ? takeBytes(used, kGemmPartElements * 2) : -1;
  work.scratchPerThread = size_t(used);
  return uint32_t(std::min<int64_t>(allClasses * conv.group * grid.rows * grid.columns, UINT32_MAX));
}

// Which class, group, outputs and panels a tile stands for.
struct ConvProduct::Share {
  int64_t residue[3], group;
  TileGrid::Place at;
};
ConvProduct::Share ConvProduct::shareOf(uint32_t tile) const {
  Share share;
  int64_t rest = tile;
  auto next = [&](int64_t count) {
    int64_t index = rest % count;
    rest /= count;
    return index;
  };
  share.at = grid.place(next(grid.rows * grid.columns));
  share.group = next(conv.group);
  for (int i = 2; i >= 0; --i)
    share.residue[i] = next(classes[i]);
  return share;
}

// The tile and those that lie beside it.
void ConvProduct::runTile(void (*multiply)(const GemmTile &), const Operands &operands, std::byte *scratch,
                          uint32_t index, int64_t sideBySide) const {
  Share share = shareOf(index);
  auto at = [&]<typename T>(int64_t offset, T *) { return reinterpret_cast<T *>(scratch + offset); };
  int64_t *lists = at(axisLists, static_cast<int64_t *>(nullptr));
  ConvGather gather;
  gather.conv = &conv;
  for (int i = 0; i < 3; ++i) {
    gather.axis[i].read(conv, i, share.residue[i], lists, lists + conv.kernel[i]);
    lists += 2 * conv.kernel[i];
  }
  int64_t outputs = gather.outputsOfClass();
  int64_t first = outputs * share.at.row / grid.rows,
          count = outputs * (share.at.row + 1) / grid.rows - first;
  int64_t panels = (conv.outPerGroup + kPanel - 1) / kPanel;
  int64_t column = panels * share.at.column / grid.columns * kPanel;
  int64_t end = std::min(panels * (share.at.column + sideBySide) / grid.columns * kPanel, conv.outPerGroup);
  if (count <= 0 || end <= column)
    return;

  float *noInput = at(zeros, static_cast<float *>(nullptr));
  std::fill(noInput, noInput + rows.depth, 0.0f);
  gather.zeros = noInput;
  gather.edges = at(edges, static_cast<float *>(nullptr));
  gather.x = operands.x + share.group * conv.inPerGroup;
  const float **a = at(table, static_cast<const float **>(nullptr));
  int64_t *offsets = at(tapOffset, static_cast<int64_t *>(nullptr));
  int64_t *pixel = at(pixels, static_cast<int64_t *>(nullptr));
  GemmTile tile = {};
  tile.taps = gather.gather(rows, first, count, a, offsets, pixel);

  float *c[kMaxTileRows];
  int64_t channel = share.group * conv.outPerGroup + column;
  for (int64_t r = 0; r < count; ++r)
    c[r] = operands.y + pixel[r] * conv.outChannels + channel;
  tile.a = a;
  tile.aStride = count;
  tile.c = c;
  tile.rows = count;
  tile.depth = rows.depth;
  tile.panelStride = conv.depth() * kPanel;
  tile.b = operands.w + (share.group * panels + column / kPanel) * tile.panelStride;
  tile.tapOffset = offsets;
  tile.columns = end - column;
  tile.bias = operands.bias ? operands.bias + channel : nullptr;
  tile.residual = operands.residual ? operands.residual + pixel[0] * conv.outChannels + channel : nullptr;
  tile.epilogue = epilogue;
  tile.copy = copy < 0 ? nullptr : at(copy, static_cast<float *>(nullptr));
  tile.parts = parts < 0 ? nullptr : at(parts, static_cast<uint16_t *>(nullptr));
  multiply(tile);
}

void ConvProduct::run(void (*multiply)(const GemmTile &), const Operands &operands,
                      const KernelPart &part) const {
  grid.forEachRun(part.begin, part.end, [&](uint32_t tile, int64_t sideBySide) {
    runTile(multiply, operands, part.scratch, tile, sideBySide);
  });
}

} // namespace dspark
