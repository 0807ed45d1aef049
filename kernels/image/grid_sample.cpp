// grid_sample: the value of an image at any position, by nearest, linear or cubic interpolation over up to
// four spatial axes, with zeros, the border or reflections outside. Tiles: blocks of (batch, output
// position). The taps of a position are worked out once and serve all channels.
#include "kernels/common/element.h"
#include "kernels/image/image.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr int kMaxSpatial = 4, kMaxTaps = 4;

enum class Padding : uint8_t { Zeros, Border, Reflection };

struct GridState {
  int64_t batch, channels, positions; // positions: outputs per channel
  int64_t dims[kMaxSpatial], pixels;
  int64_t positionsPerTile;
  int spatial;
  Interpolation mode;
  Padding padding;
  bool alignCorners;
};

// Folds x back and forth into [low, high].
double reflect(double x, double low, double high) {
  double range = high - low;
  if (range <= 0)
    return low;
  double distance = std::fmod(std::fabs(x - low), 2 * range);
  return low + (distance > range ? 2 * range - distance : distance);
}

// The taps of one axis; a tap outside a zero-padded image has index -1.
struct AxisTaps {
  int count;
  int64_t index[kMaxTaps];
  double weight[kMaxTaps];
};

class Sampler {
public:
  explicit Sampler(const GridState &s) : s(s) {}

  // `normalized` is the grid's coordinate of this axis, -1 to 1 over the image.
  AxisTaps axisTaps(int axis, double normalized) const {
    double size = double(s.dims[axis]);
    double low = s.alignCorners ? 0 : -0.5, high = s.alignCorners ? size - 1 : size - 0.5;
    // The coordinate is rounded to f32, so that ties of "nearest" fall as in the f32 implementations.
    double x = float(s.alignCorners ? (normalized + 1) / 2 * (size - 1) : ((normalized + 1) * size - 1) / 2);
    if (s.mode == Interpolation::Nearest)
      x = std::nearbyint(x);
    x = x >= -1e12 ? std::min(x, 1e12) : -1e12; // NaN counts as far outside
    if (x < low || x > high) {
      if (s.padding == Padding::Border)
        x = std::clamp(x, 0.0, size - 1);
      else if (s.padding == Padding::Reflection)
        x = reflect(x, low, high);
    }
    AxisTaps taps;
    int64_t base = int64_t(std::floor(x));
    double t = x - double(base);
    switch (s.mode) {
    case Interpolation::Nearest:
      taps = {1, {base}, {1}};
      break;
    case Interpolation::Linear:
      taps = {2, {base, base + 1}, {1 - t, t}};
      break;
    case Interpolation::Cubic:
      taps = {4, {base - 1, base, base + 1, base + 2}, {far(t + 1), near(t), near(1 - t), far(2 - t)}};
      break;
    }
    for (int i = 0; i < taps.count; ++i)
      taps.index[i] = inside(taps.index[i], axis, low, high);
    return taps;
  }

private:
  static constexpr double kA = -0.75;
  static double near(double d) { return ((kA + 2) * d - (kA + 3)) * d * d + 1; }
  static double far(double d) { return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA; }

  int64_t inside(int64_t i, int axis, double low, double high) const {
    int64_t size = s.dims[axis];
    if (i >= 0 && i < size)
      return i;
    if (s.padding == Padding::Zeros)
      return -1;
    double x = s.padding == Padding::Reflection ? std::trunc(reflect(double(i), low, high)) : double(i);
    return std::clamp<int64_t>(int64_t(x), 0, size - 1);
  }

  const GridState &s;
};

// All products of the axes' taps, as offsets into a channel.
struct PointTaps {
  int count = 0;
  int64_t offset[256];
  double weight[256];

  PointTaps(const GridState &s, const AxisTaps *axes) { add(s, axes, 0, 0, 1); }

private:
  void add(const GridState &s, const AxisTaps *axes, int axis, int64_t at, double product) {
    if (axis == s.spatial) {
      offset[count] = at;
      weight[count++] = product;
      return;
    }
    for (int i = 0; i < axes[axis].count; ++i)
      if (axes[axis].index[i] >= 0)
        add(s, axes, axis + 1, at * s.dims[axis] + axes[axis].index[i], product * axes[axis].weight[i]);
  }
};

template <typename T, typename G>
void samplePosition(const KernelCall &call, const GridState &s, int64_t index) {
  using A = std::conditional_t<std::is_same_v<T, float>, float, double>;
  const G *grid = call.in[1].as<const G>() + index * s.spatial;
  AxisTaps axes[kMaxSpatial];
  for (int i = 0; i < s.spatial; ++i) // the grid lists the innermost axis first
    axes[i] = Sampler(s).axisTaps(i, double(grid[s.spatial - 1 - i]));
  PointTaps taps(s, axes);
  int64_t n = index / s.positions, position = index % s.positions;
  const T *image = call.in[0].as<const T>() + n * s.channels * s.pixels;
  T *out = call.out[0].as<T>() + n * s.channels * s.positions + position;
  for (int64_t c = 0; c < s.channels; ++c) {
    A sum = 0;
    for (int i = 0; i < taps.count; ++i)
      sum += A(taps.weight[i]) * A(image[c * s.pixels + taps.offset[i]]);
    out[c * s.positions] = fromReal<T>(double(sum));
  }
}

} // namespace

void prepareGridSample(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<GridState>();
  const TensorView &x = call.in[0];
  s.spatial = x.rank - 2;
  s.batch = x.dim(0), s.channels = x.dim(1);
  s.positions = call.out[0].elements(2, x.rank), s.pixels = x.elements(2, x.rank);
  for (int i = 0; i < s.spatial; ++i)
    s.dims[i] = x.dim(i + 2);
  std::string_view mode = call.attrs.s("mode", "linear"), padding = call.attrs.s("padding_mode", "zeros");
  s.mode = mode == "nearest"                      ? Interpolation::Nearest
           : mode == "cubic" || mode == "bicubic" ? Interpolation::Cubic
                                                  : Interpolation::Linear;
  s.padding = padding == "border"       ? Padding::Border
              : padding == "reflection" ? Padding::Reflection
                                        : Padding::Zeros;
  s.alignCorners = call.attrs.i("align_corners", 0) != 0;
  s.positionsPerTile = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, s.channels));
  work.tiles[0] = uint32_t((s.batch * s.positions + s.positionsPerTile - 1) / s.positionsPerTile);
  work.bytes = double(dtypeBytes(x.type, x.elements() + call.out[0].elements()));
}

void runGridSample(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<GridState>();
  int64_t begin = part.begin * s.positionsPerTile;
  int64_t end = std::min(s.batch * s.positions, int64_t(part.end) * s.positionsPerTile);
  dispatchNumber(call.in[0].type, [&]<typename T>() {
    dispatchFloat(call.in[1].type, [&]<typename G>() {
      for (int64_t i = begin; i < end; ++i)
        samplePosition<T, G>(call, s, i);
    });
  });
}

} // namespace dspark
