#include "kernels/conv/conv_layout.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr int64_t kPanelColumns = 16;

int64_t panelsOf(int64_t columns) { return (columns + kPanelColumns - 1) / kPanelColumns; }

// out[c][r] = in[r][c] for rows [begin, end) of every matrix; 16 x 16 blocks keep both sides in cache lines.
void transpose(const float *in, int64_t rows, int64_t columns, int64_t begin, int64_t end, float *out) {
  constexpr int64_t kBlock = 16;
  for (int64_t r0 = begin; r0 < end; r0 += kBlock)
    for (int64_t c0 = 0; c0 < columns; c0 += kBlock)
      for (int64_t c = c0; c < std::min(c0 + kBlock, columns); ++c)
        for (int64_t r = r0; r < std::min(r0 + kBlock, end); ++r)
          out[c * rows + r] = in[r * columns + c];
}

// The share of `batch` matrices [rows, columns] that falls to a tile.
void transposeShare(const float *in, int64_t batch, int64_t rows, int64_t columns, float *out, uint32_t tile,
                    uint32_t tiles) {
  int64_t begin = batch * rows * tile / tiles, end = batch * rows * (tile + 1) / tiles;
  while (begin < end) {
    int64_t b = begin / rows, stop = std::min(end, (b + 1) * rows);
    transpose(in + b * rows * columns, rows, columns, begin - b * rows, stop - b * rows,
              out + b * rows * columns);
    begin = stop;
  }
}

// One panel: K is (tap, input channel), columns are output channels.
void packPanel(const float *w, const ConvPlan &conv, int64_t g, int64_t panel, float *out) {
  int64_t first = panel * kPanelColumns, columns = std::min(kPanelColumns, conv.outPerGroup - first);
  int64_t outStep = conv.isTransposed ? conv.taps : conv.inPerGroup * conv.taps;
  int64_t inStep = conv.isTransposed ? conv.outPerGroup * conv.taps : conv.taps;
  const float *source = w + g * conv.inPerGroup * conv.outPerGroup * conv.taps + first * outStep;
  for (int64_t tap = 0; tap < conv.taps; ++tap)
    for (int64_t i = 0; i < conv.inPerGroup; ++i, out += kPanelColumns)
      for (int64_t j = 0; j < kPanelColumns; ++j)
        out[j] = j < columns ? source[j * outStep + i * inStep + tap] : 0;
}

void packShare(const float *w, const ConvPlan &conv, bool depthwise, float *out, uint32_t tile,
               uint32_t tiles) {
  if (depthwise)
    return transposeShare(w, 1, conv.outChannels, conv.taps, out, tile, tiles);
  int64_t panels = panelsOf(conv.outPerGroup), all = panels * conv.group;
  for (int64_t p = all * tile / tiles; p < all * (tile + 1) / tiles; ++p)
    packPanel(w, conv, p / panels, p % panels, out + p * conv.depth() * kPanelColumns);
}

} // namespace

int64_t packedWeightFloats(const ConvPlan &conv, bool depthwise) {
  if (depthwise)
    return conv.taps * conv.outChannels;
  return conv.group * panelsOf(conv.outPerGroup) * kPanelColumns * conv.depth();
}

void ConvScratch::plan(const ConvPlan &conv, bool hasResidual, bool isPacked, int64_t packedFloats) {
  auto take = [&](int64_t count) {
    int64_t at = floats;
    floats += (count + 15) / 16 * 16;
    return at;
  };
  int64_t outputs = conv.batch * conv.outChannels * conv.outPixels();
  // With one channel or one pixel both orders are the same bytes.
  bool movesIn = !conv.isChannelsLast && conv.inChannels > 1 && conv.inPixels() > 1;
  bool movesOut = !conv.isChannelsLast && conv.outChannels > 1 && conv.outPixels() > 1;
  if (movesIn)
    x = take(conv.batch * conv.inChannels * conv.inPixels());
  if (movesOut) {
    y = take(outputs);
    if (hasResidual)
      residual = take(outputs);
  }
  if (!isPacked)
    w = take(packedFloats);
}

void arrangeOperands(const KernelCall &call, const ConvPlan &conv, const ConvScratch &at, bool depthwise,
                     float *shared, uint32_t tile, uint32_t tiles) {
  if (at.x >= 0)
    transposeShare(call.in[0].as<float>(), conv.batch, conv.inChannels, conv.inPixels(), shared + at.x, tile,
                   tiles);
  if (at.w >= 0)
    packShare(call.in[1].as<float>(), conv, depthwise, shared + at.w, tile, tiles);
  if (at.residual >= 0)
    transposeShare(call.in[3].as<float>(), conv.batch, conv.outChannels, conv.outPixels(),
                   shared + at.residual, tile, tiles);
}

void arrangeResult(const KernelCall &call, const ConvPlan &conv, const ConvScratch &at, const float *shared,
                   uint32_t tile, uint32_t tiles) {
  transposeShare(shared + at.y, conv.batch, conv.outPixels(), conv.outChannels, call.out[0].as<float>(), tile,
                 tiles);
}

} // namespace dspark
