// roi_align: average or maximum of bilinear samples in each cell of a grid over a region. Tiles: (region,
// channel block). Samples outside the image count as zeros in the average; only those inside are visited, so
// that a region of any size costs no more than the image.
#include "kernels/common/element.h"
#include "kernels/image/image.h"
#include <algorithm>

namespace dspark {
namespace {

struct RoiState {
  int64_t batch, channels, height, width, outHeight, outWidth;
  int64_t channelsPerTile, blocks;
  int64_t samplingRatio;
  double scale;
  bool halfPixel, isMax;
};

// Samples of one cell along one axis: position(i) = start + (i + 0.5) * step, i in [0, count), of which
// [first, last] are within [-1, size].
struct CellAxis {
  double start, step, count;
  int64_t first, last;

  CellAxis(double roiStart, double cell, int64_t index, double count, int64_t size)
      : start(roiStart + double(index) * cell), step(cell / std::max(count, 1.0)), count(count) {
    first = 0, last = -1;
    if (!(count >= 1))
      return;
    double low = 0, high = count - 1;
    if (step > 0) {
      low = std::max(low, std::floor((-1 - start) / step - 0.5));
      high = std::min(high, std::ceil((double(size) - start) / step - 0.5));
    } else if (count > kManySamples || !(step <= 0)) {
      return;
    }
    // Indices beyond 2^53 would not be exact; regions that large lie outside any image.
    if (low <= high && high < 0x1p53)
      first = int64_t(low), last = int64_t(high);
  }
  double position(int64_t i) const { return start + (double(i) + 0.5) * step; }

  static constexpr double kManySamples = 1 << 20;
};

struct Bilinear {
  int64_t low, high;
  double lowWeight, highWeight;

  Bilinear(double x, int64_t size) {
    x = std::max(x, 0.0);
    low = std::min(int64_t(x), size - 1), high = std::min(low + 1, size - 1);
    highWeight = low == size - 1 ? 0 : x - double(low);
    lowWeight = 1 - highWeight;
  }
};

bool isInside(double x, int64_t size) { return x >= -1 && x <= double(size); }

template <typename T>
double poolCell(const RoiState &s, const T *image, const CellAxis &rows, const CellAxis &columns) {
  double sum = 0, top = 0;
  bool isFirst = true;
  for (int64_t iy = rows.first; iy <= rows.last; ++iy) {
    double y = rows.position(iy);
    for (int64_t ix = columns.first; ix <= columns.last; ++ix) {
      double x = columns.position(ix);
      double parts[4] = {0, 0, 0, 0};
      if (isInside(y, s.height) && isInside(x, s.width)) {
        Bilinear v(y, s.height), h(x, s.width);
        parts[0] = v.lowWeight * h.lowWeight * double(image[v.low * s.width + h.low]);
        parts[1] = v.lowWeight * h.highWeight * double(image[v.low * s.width + h.high]);
        parts[2] = v.highWeight * h.lowWeight * double(image[v.high * s.width + h.low]);
        parts[3] = v.highWeight * h.highWeight * double(image[v.high * s.width + h.high]);
      }
      sum += parts[0] + parts[1] + parts[2] + parts[3];
      double largest = *std::max_element(parts, parts + 4);
      top = isFirst ? largest : std::max(top, largest);
      isFirst = false;
    }
  }
  // The maximum counts a sample outside as 0, like the average.
  double visited = double(rows.last - rows.first + 1) * double(columns.last - columns.first + 1);
  if (visited < rows.count * columns.count)
    top = std::max(top, 0.0);
  return s.isMax ? top : sum / std::max(rows.count * columns.count, 1.0);
}

template <typename T> void poolRegion(const KernelCall &call, const RoiState &s, int64_t tile) {
  int64_t region = tile / s.blocks, begin = tile % s.blocks * s.channelsPerTile;
  int64_t end = std::min(s.channels, begin + s.channelsPerTile), cells = s.outHeight * s.outWidth;
  T *out = call.out[0].as<T>() + (region * s.channels + begin) * cells;
  int64_t n = call.in[2].as<const int64_t>()[region];
  if (n < 0 || n >= s.batch || s.height == 0 || s.width == 0) { // no such image
    std::fill(out, out + (end - begin) * cells, T(0));
    return;
  }
  const T *roi = call.in[1].as<const T>() + region * 4;
  double shift = s.halfPixel ? 0.5 : 0;
  double left = double(roi[0]) * s.scale - shift, above = double(roi[1]) * s.scale - shift;
  double width = double(roi[2]) * s.scale - shift - left, height = double(roi[3]) * s.scale - shift - above;
  if (!s.halfPixel)
    width = std::max(width, 1.0), height = std::max(height, 1.0);
  double cellHeight = height / double(s.outHeight), cellWidth = width / double(s.outWidth);
  double countY = s.samplingRatio > 0 ? double(s.samplingRatio) : std::ceil(cellHeight);
  double countX = s.samplingRatio > 0 ? double(s.samplingRatio) : std::ceil(cellWidth);
  for (int64_t c = begin; c < end; ++c) {
    const T *image = call.in[0].as<const T>() + (n * s.channels + c) * s.height * s.width;
    for (int64_t y = 0; y < s.outHeight; ++y) {
      CellAxis rows(above, cellHeight, y, countY, s.height);
      for (int64_t x = 0; x < s.outWidth; ++x)
        *out++ = fromReal<T>(poolCell(s, image, rows, CellAxis(left, cellWidth, x, countX, s.width)));
    }
  }
}

} // namespace

void prepareRoiAlign(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<RoiState>();
  const TensorView &x = call.in[0], &y = call.out[0];
  s.batch = x.dim(0), s.channels = x.dim(1), s.height = x.dim(2), s.width = x.dim(3);
  s.outHeight = y.dim(2), s.outWidth = y.dim(3);
  s.channelsPerTile = std::max<int64_t>(1, 1024 / (s.outHeight * s.outWidth));
  s.blocks = (s.channels + s.channelsPerTile - 1) / s.channelsPerTile;
  s.samplingRatio = call.attrs.i("sampling_ratio", 0);
  s.scale = call.attrs.f("spatial_scale", 1);
  s.halfPixel = call.attrs.s("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  s.isMax = call.attrs.s("mode", "avg") == "max";
  work.tiles[0] = uint32_t(y.dim(0) * s.blocks);
  work.bytes = double(dtypeBytes(y.type, y.elements()));
}

void runRoiAlign(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<RoiState>();
  dispatchFloat(call.in[0].type, [&]<typename T>() {
    for (int64_t tile = part.begin; tile < part.end; ++tile)
      poolRegion<T>(call, s, tile);
  });
}

} // namespace dspark
