#include "kernels/image/resize_table.h"
#include <algorithm>
#include <cmath>

namespace dspark {
namespace {

double support(Interpolation mode) { return mode == Interpolation::Cubic ? 2 : 1; }

// The input coordinate of output index i; nullopt where CropAndResize looks outside the input.
std::optional<double> sourceOf(const ResizeAttrs &attrs, const ResizeAxis &axis, int64_t i) {
  double x = double(i), in = double(axis.in), width = axis.width;
  switch (attrs.coordinates) {
  case Coordinates::AlignCorners:
    return width == 1 ? 0 : x * (in - 1) / (width - 1);
  case Coordinates::Asymmetric:
    return x / axis.scale;
  case Coordinates::PytorchHalfPixel:
    return width == 1 ? 0 : (x + 0.5) / axis.scale - 0.5;
  case Coordinates::HalfPixel:
    return (x + 0.5) / axis.scale - 0.5;
  case Coordinates::HalfPixelSymmetric: {
    double offset = in / 2 * (1 - double(axis.out) / width);
    return offset + (x + 0.5) / axis.scale - 0.5;
  }
  case Coordinates::CropAndResize: {
    double length = (axis.roi[1] - axis.roi[0]) * (in - 1);
    double source = axis.roi[0] * (in - 1) + (width == 1 ? length / 2 : x * length / (width - 1));
    return source >= 0 && source <= in - 1 ? std::optional(source) : std::nullopt;
  }
  }
  return 0;
}

int64_t nearest(Rounding rounding, double x) {
  double low = std::floor(x), rest = x - low;
  bool up = rounding == Rounding::PreferFloor  ? rest > 0.5
            : rounding == Rounding::PreferCeil ? rest >= 0.5
            : rounding == Rounding::Ceil       ? rest > 0
                                               : false;
  return int64_t(low) + up;
}

// The filter at distance d from its centre.
double weightAt(const ResizeFilter &filter, double d) {
  d = std::fabs(d);
  if (filter.attrs.mode == Interpolation::Linear)
    return std::max(0.0, 1 - d);
  double a = filter.cubicA;
  if (d <= 1)
    return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// Appends the taps around x; indices beyond the ends fall on the end, or out if they are excluded.
int64_t appendTaps(const ResizeFilter &filter, const ResizeAxis &axis, double x, int64_t count) {
  // An antialiasing filter is stretched by 1 / scale when shrinking. The lower limit only guards against
  // scales that contradict the sizes.
  double floorScale = 0.25 * double(axis.out) / double(axis.in);
  double stretch = filter.antialias ? std::min(1.0, std::max(axis.scale, floorScale)) : 1.0;
  double reach = support(filter.attrs.mode) / stretch, total = 0;
  int64_t first = int64_t(std::floor(x - reach)) + 1, last = int64_t(std::ceil(x + reach)) - 1, begin = count;
  for (int64_t i = first; i <= last; ++i) {
    double weight = weightAt(filter, stretch * (double(i) - x));
    int64_t index = std::clamp<int64_t>(i, 0, axis.in - 1);
    if (weight == 0 || (filter.excludeOutside && index != i))
      continue;
    total += weight;
    if (count > begin && axis.taps[count - 1].index == index)
      axis.taps[count - 1].weight += weight;
    else if (count < axis.capacity)
      axis.taps[count++] = {index, weight};
  }
  if ((filter.antialias || filter.excludeOutside) && total != 0)
    for (int64_t t = begin; t < count; ++t)
      axis.taps[t].weight /= total;
  if (count == begin && count < axis.capacity) // everything was excluded
    axis.taps[count++] = {std::clamp<int64_t>(int64_t(x), 0, axis.in - 1), 0};
  return count;
}

} // namespace

int64_t maxResizeTaps(const ResizeAttrs &attrs, bool antialias, int64_t in, int64_t out) {
  if (attrs.mode == Interpolation::Nearest)
    return 1;
  double reach = support(attrs.mode);
  if (antialias && out > 0)
    reach *= std::max(1.0, 4.0 * double(in) / double(out));
  return std::max<int64_t>(1, std::min<int64_t>(in, int64_t(2 * reach) + 2));
}

void buildResizeAxis(const ResizeFilter &filter, ResizeAxis &axis) {
  int64_t count = 0;
  axis.isIdentity = axis.in == axis.out;
  for (int64_t i = 0; i < axis.out; ++i) {
    axis.starts[i] = count;
    if (std::optional<double> source = sourceOf(filter.attrs, axis, i)) {
      double x = *source >= -1e9 ? std::min(*source, 1e15) : -1e9; // NaN ends at the low end
      if (filter.attrs.mode != Interpolation::Nearest)
        count = appendTaps(filter, axis, x, count);
      else if (count < axis.capacity)
        axis.taps[count++] = {std::clamp<int64_t>(nearest(filter.attrs.rounding, x), 0, axis.in - 1), 1};
    }
    axis.isIdentity =
        axis.isIdentity && count == i + 1 && axis.taps[i].index == i && axis.taps[i].weight == 1;
  }
  axis.starts[axis.out] = count;
}

} // namespace dspark
