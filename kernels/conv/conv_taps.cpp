#include "kernels/conv/conv_taps.h"
#include "kernels/common/shares.h"
#include <algorithm>
#include <cstring>

namespace dspark {

void ConvAxis::read(const ConvPlan &conv, int axis, int64_t residue, int64_t *tapList, int64_t *offsetList) {
  int64_t step = conv.stride[axis], size = conv.out[axis];
  tap = tapList;
  offset = offsetList;
  taps = 0;
  if (!conv.isTransposed) {
    outputs = size;
    outStart = 0;
    outStep = 1;
    inStep = step;
    for (; taps < conv.kernel[axis]; ++taps) {
      tap[taps] = taps;
      offset[taps] = taps * conv.dilation[axis] - conv.pad[axis];
    }
    return;
  }
  outputs = size > residue ? (size - residue + step - 1) / step : 0;
  outStart = residue;
  outStep = step;
  inStep = 1;
  for (int64_t k = 0; k < conv.kernel[axis]; ++k) {
    int64_t distance = residue + conv.pad[axis] - k * conv.dilation[axis];
    if (distance % step == 0) {
      tap[taps] = k;
      offset[taps++] = distance / step;
    }
  }
}

void ConvRows::plan(const ConvPlan &conv) {
  joinsTaps = !conv.isTransposed && conv.group == 1 && conv.dilation[2] == 1 && conv.kernel[2] > 1 &&
              conv.inChannels < 32;
  depth = conv.inPerGroup * (joinsTaps ? conv.kernel[2] : 1);
  maxTaps = joinsTaps ? conv.kernel[0] * conv.kernel[1] : conv.taps;
  // Tables and copies of a tile should stay in the L2 cache.
  int64_t room = joinsTaps ? 64 * 1024 / std::max<int64_t>(conv.depth(), 1) : 24 * 1024 / maxTaps;
  maxRows = std::clamp<int64_t>(room, 12, 192);
}

// `length` outputs from (n, o0, o1, o2), which are rows [at, at + length) of the tile.
struct ConvGather::Run {
  int64_t n, o0, o1, o2, length, at;
};

void ConvGather::separateTaps(const Run &run, int64_t count, const float **a) const {
  const ConvPlan &c = *conv;
  const float **row = a + run.at;
  for (int64_t t0 = 0; t0 < axis[0].taps; ++t0)
    for (int64_t t1 = 0; t1 < axis[1].taps; ++t1) {
      int64_t i0 = run.o0 * axis[0].inStep + axis[0].offset[t0],
              i1 = run.o1 * axis[1].inStep + axis[1].offset[t1];
      bool isInside = i0 >= 0 && i0 < c.in[0] && i1 >= 0 && i1 < c.in[1];
      for (int64_t t2 = 0; t2 < axis[2].taps; ++t2, row += count) {
        if (!isInside) {
          std::fill(row, row + run.length, zeros);
          continue;
        }
        const float *line = x + ((run.n * c.in[0] + i0) * c.in[1] + i1) * c.in[2] * c.inChannels;
        int64_t i2 = run.o2 * axis[2].inStep + axis[2].offset[t2];
        // Pixels [begin, end) lie inside the line.
        int64_t step = axis[2].inStep, begin = i2 < 0 ? std::min(ceilOf(-i2, step), run.length) : 0,
                end = i2 < c.in[2] ? std::clamp(ceilOf(c.in[2] - i2, step), begin, run.length) : begin;
        std::fill(row, row + begin, zeros);
        for (int64_t j = begin; j < end; ++j)
          row[j] = line + (i2 + j * step) * c.inChannels;
        std::fill(row + end, row + run.length, zeros);
      }
    }
}

void ConvGather::joinedTaps(const ConvRows &rows, const Run &run, int64_t count, const float **a) {
  const ConvPlan &c = *conv;
  const float **row = a + run.at;
  for (int64_t t0 = 0; t0 < axis[0].taps; ++t0)
    for (int64_t t1 = 0; t1 < axis[1].taps; ++t1, row += count) {
      int64_t i0 = run.o0 * axis[0].inStep + axis[0].offset[t0],
              i1 = run.o1 * axis[1].inStep + axis[1].offset[t1];
      if (i0 < 0 || i0 >= c.in[0] || i1 < 0 || i1 >= c.in[1]) {
        std::fill(row, row + run.length, zeros);
        continue;
      }
      const float *line = x + ((run.n * c.in[0] + i0) * c.in[1] + i1) * c.in[2] * c.inChannels;
      int64_t step = axis[2].inStep, i2 = run.o2 * step + axis[2].offset[0];
      auto copyEdge = [&](int64_t j) {
        int64_t from = i2 + j * step, begin = std::clamp<int64_t>(-from, 0, c.kernel[2]),
                end = std::clamp<int64_t>(c.in[2] - from, begin, c.kernel[2]);
        std::fill(edges, edges + rows.depth, 0.0f);
        std::memcpy(edges + begin * c.inChannels, line + (from + begin) * c.inChannels,
                    size_t((end - begin) * c.inChannels) * sizeof(float));
        row[j] = edges;
        edges += rows.depth;
      };
      // Outputs [begin, end) read inside the line only.
      int64_t last = c.in[2] - c.kernel[2], begin = i2 < 0 ? std::min(ceilOf(-i2, step), run.length) : 0,
              end = i2 <= last ? std::clamp((last - i2) / step + 1, begin, run.length) : begin;
      for (int64_t j = 0; j < begin; ++j)
        copyEdge(j);
      for (int64_t j = begin; j < end; ++j)
        row[j] = line + (i2 + j * step) * c.inChannels;
      for (int64_t j = end; j < run.length; ++j)
        copyEdge(j);
    }
}

int64_t ConvGather::gather(const ConvRows &rows, int64_t first, int64_t count, const float **a,
                           int64_t *tapOffset, int64_t *pixel) {
  const ConvPlan &c = *conv;
  int64_t taps = 0;
  for (int64_t t0 = 0; t0 < axis[0].taps; ++t0)
    for (int64_t t1 = 0; t1 < axis[1].taps; ++t1)
      for (int64_t t2 = 0; t2 < (rows.joinsTaps ? 1 : axis[2].taps); ++t2)
        tapOffset[taps++] =
            ((axis[0].tap[t0] * c.kernel[1] + axis[1].tap[t1]) * c.kernel[2] + axis[2].tap[t2]) *
            c.inPerGroup * 16;
  Run run;
  for (run.at = 0; run.at < count; run.at += run.length) {
    int64_t index = first + run.at;
    run.o2 = index % axis[2].outputs;
    run.o1 = index / axis[2].outputs % axis[1].outputs;
    run.o0 = index / (axis[2].outputs * axis[1].outputs) % axis[0].outputs;
    run.n = index / (axis[2].outputs * axis[1].outputs * axis[0].outputs);
    run.length = std::min(axis[2].outputs - run.o2, count - run.at);
    if (rows.joinsTaps)
      joinedTaps(rows, run, count, a);
    else
      separateTaps(run, count, a);
    int64_t p0 = axis[0].outStart + run.o0 * axis[0].outStep,
            p1 = axis[1].outStart + run.o1 * axis[1].outStep;
    int64_t line = ((run.n * c.out[0] + p0) * c.out[1] + p1) * c.out[2];
    for (int64_t j = 0; j < run.length; ++j)
      pixel[run.at + j] = line + axis[2].outStart + (run.o2 + j) * axis[2].outStep;
  }
  return taps;
}

} // namespace dspark
