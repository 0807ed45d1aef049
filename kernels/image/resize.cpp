// resize: separable interpolation over any axes.
//
// Phase 0 builds one table per axis from the operands (resize_table.h). Phase 1 walks output rows; a row runs
// over the last resized axis `a` and everything inside it, [out_a][inner], so that channels-last images move
// whole pixels:
//   blend    temp[in_a * inner] = sum over the taps of the outer axes of weight * input row
//   resample out[x][c]          = sum over the taps of x of weight * temp[index][c]
// Nearest interpolation copies elements of any type and repeats a row that comes from the same source as the
// one before.
#include "kernels/common/element.h"
#include "kernels/image/image.h"
#include "kernels/image/resize_table.h"
#include <algorithm>
#include <cstring>

namespace dspark {
namespace {

struct ResizeState {
  ResizeFilter filter;
  double extrapolation;
  int64_t capacity[kMaxRank]; // taps of each axis
  int firstResized;           // rows never reach further out than this axis; scratch is sized for it
};

size_t axisBytes(const ResizeState &s, const KernelCall &call, int axis) {
  return size_t(call.out[0].dim(axis) + 1) * sizeof(int64_t) + size_t(s.capacity[axis]) * sizeof(ResizeTap);
}

// The tables lie one after the other behind the array of axes.
void layOutAxes(const ResizeState &s, const KernelCall &call, std::byte *shared) {
  auto *axes = reinterpret_cast<ResizeAxis *>(shared);
  std::byte *at = shared + sizeof(ResizeAxis) * size_t(call.in[0].rank);
  for (int i = 0; i < call.in[0].rank; ++i) {
    ResizeAxis &axis = axes[i];
    axis = {};
    axis.in = call.in[0].dim(i), axis.out = call.out[0].dim(i);
    axis.scale = 1, axis.width = double(axis.out), axis.roi[1] = 1;
    axis.capacity = s.capacity[i];
    axis.taps = reinterpret_cast<ResizeTap *>(at);
    axis.starts = reinterpret_cast<int64_t *>(at + size_t(axis.capacity) * sizeof(ResizeTap));
    at += axisBytes(s, call, i);
  }
}

double roiAt(const KernelCall &call, int64_t i) {
  double value = 0;
  dispatchFloat(call.in[1].type, [&]<typename T>() { value = double(call.in[1].as<const T>()[i]); });
  return value;
}

// Scales of the axes that `axes` names, from whichever operand is given.
void readScales(const ResizeState &s, const KernelCall &call, ResizeAxis *axes) {
  int rank = call.in[0].rank;
  std::span<const int64_t> attr = call.attrs.ints("axes");
  int count = attr.empty() ? rank : int(attr.size());
  auto axisAt = [&](int i) -> ResizeAxis & {
    int axis = attr.empty() ? i : normalizeAxis(attr[size_t(i)], rank);
    return axes[physicalAxis(axis, rank, s.filter.attrs.channelsLast)];
  };
  bool hasScales = call.has(2) && call.in[2].elements() > 0;
  double common = 0;
  for (int i = 0; i < count; ++i) {
    ResizeAxis &axis = axisAt(i);
    axis.scale = hasScales ? double(call.in[2].as<const float>()[i])
                           : double(call.in[3].as<const int64_t>()[i]) / double(axis.in);
    AspectPolicy policy = s.filter.attrs.policy;
    common = i == 0                              ? axis.scale
             : policy == AspectPolicy::NotLarger ? std::min(common, axis.scale)
                                                 : std::max(common, axis.scale);
  }
  bool sharesScale = !hasScales && s.filter.attrs.policy != AspectPolicy::Stretch;
  for (int i = 0; i < count; ++i) {
    ResizeAxis &axis = axisAt(i);
    if (sharesScale)
      axis.scale = common;
    if (hasScales || sharesScale)
      axis.width = axis.scale * double(axis.in);
    if (s.filter.attrs.coordinates == Coordinates::CropAndResize)
      axis.roi[0] = roiAt(call, i), axis.roi[1] = roiAt(call, count + i);
  }
}

// The rows of one call: which axis they run over, and how the outer axes split a row number.
struct Rows {
  int last; // axis a
  int64_t count, inner;

  Rows(const ResizeAxis *axes, int rank, int first) : last(rank - 1), count(1), inner(1) {
    while (last > first && axes[last].isIdentity)
      inner *= axes[last--].in;
    for (int i = 0; i < last; ++i)
      count *= axes[i].out;
  }
};

// The outer axes' taps of one output row, visited one combination at a time.
class OuterTaps {
public:
  OuterTaps(const ResizeAxis *axes, const Rows &rows, int64_t row) : axes(axes), last(rows.last) {
    for (int i = last; i-- > 0; row /= axes[i].out) {
      int64_t index = row % axes[i].out;
      begin[i] = at[i] = axes[i].starts[index], end[i] = axes[i].starts[index + 1];
      isEmpty |= begin[i] == end[i];
    }
  }
  bool empty() const { return isEmpty; }
  int64_t sourceRow() const {
    int64_t row = 0;
    for (int i = 0; i < last; ++i)
      row = row * axes[i].in + axes[i].taps[at[i]].index;
    return row;
  }
  double weight() const {
    double product = 1;
    for (int i = 0; i < last; ++i)
      product *= axes[i].taps[at[i]].weight;
    return product;
  }
  bool next() {
    for (int i = last; i-- > 0;) {
      if (++at[i] < end[i])
        return true;
      at[i] = begin[i];
    }
    return false;
  }

private:
  const ResizeAxis *axes;
  int last;
  bool isEmpty = false;
  int64_t at[kMaxRank], begin[kMaxRank], end[kMaxRank];
};

// Sums are f32 where every value of T is exact in f32, else f64.
template <typename T>
using Sum =
    std::conditional_t<(std::is_integral_v<T> && sizeof(T) > 2) || std::is_same_v<T, double>, double, float>;

template <typename T>
void interpolateRows(const KernelCall &call, const ResizeState &s, const ResizeAxis *axes, const Rows &rows,
                     int64_t begin, int64_t end, std::byte *scratch) {
  using A = Sum<T>;
  const ResizeAxis &axis = axes[rows.last];
  int64_t inCount = axis.in * rows.inner, outCount = axis.out * rows.inner;
  A *temp = reinterpret_cast<A *>(scratch), *sums = temp + inCount;
  T fill = fromReal<T>(s.extrapolation);
  for (int64_t row = begin; row < end; ++row) {
    T *out = call.out[0].as<T>() + row * outCount;
    OuterTaps outer(axes, rows, row);
    if (outer.empty()) {
      std::fill(out, out + outCount, fill);
      continue;
    }
    bool isFirst = true;
    do {
      const T *in = call.in[0].as<const T>() + outer.sourceRow() * inCount;
      A weight = A(outer.weight());
      if (isFirst)
        for (int64_t i = 0; i < inCount; ++i)
          temp[i] = weight * A(in[i]);
      else
        for (int64_t i = 0; i < inCount; ++i)
          temp[i] += weight * A(in[i]);
      isFirst = false;
    } while (outer.next());
    for (int64_t x = 0; x < axis.out; ++x, out += rows.inner) {
      int64_t tap = axis.starts[x], tapEnd = axis.starts[x + 1];
      if (tap == tapEnd) {
        std::fill(out, out + rows.inner, fill);
        continue;
      }
      std::fill(sums, sums + rows.inner, A(0));
      for (; tap < tapEnd; ++tap) {
        const A *from = temp + axis.taps[tap].index * rows.inner;
        A weight = A(axis.taps[tap].weight);
        for (int64_t c = 0; c < rows.inner; ++c)
          sums[c] += weight * from[c];
      }
      for (int64_t c = 0; c < rows.inner; ++c)
        out[c] = fromReal<T>(double(sums[c]));
    }
  }
}

// Pixels of N bytes (0: of `bytes`) from a source row.
template <size_t N>
void copyPixels(const ResizeAxis &axis, const std::byte *from, std::byte *to, size_t bytes,
                const std::byte *fill) {
  size_t size = N ? N : bytes;
  for (int64_t x = 0; x < axis.out; ++x, to += size) {
    int64_t tap = axis.starts[x];
    const std::byte *pixel = tap < axis.starts[x + 1] ? from + size_t(axis.taps[tap].index) * size : fill;
    std::memcpy(to, pixel, size);
  }
}

// `fill` is one pixel of extrapolation_value.
void copyRows(const KernelCall &call, const ResizeAxis *axes, const Rows &rows, int64_t begin, int64_t end,
              const std::byte *fill) {
  const ResizeAxis &axis = axes[rows.last];
  size_t pixel = size_t(rows.inner) * size_t(dtypeBits(call.in[0].type) / 8);
  size_t inBytes = size_t(axis.in) * pixel, outBytes = size_t(axis.out) * pixel;
  auto copy = pixel == 1   ? copyPixels<1>
              : pixel == 2 ? copyPixels<2>
              : pixel == 4 ? copyPixels<4>
              : pixel == 8 ? copyPixels<8>
                           : copyPixels<0>;
  constexpr int64_t kNone = -2, kOutside = -1;
  int64_t previous = kNone;
  for (int64_t row = begin; row < end; ++row) {
    std::byte *out = call.out[0].as<std::byte>() + size_t(row) * outBytes;
    OuterTaps outer(axes, rows, row);
    int64_t source = outer.empty() ? kOutside : outer.sourceRow();
    if (source == previous)
      std::memcpy(out, out - outBytes, outBytes);
    else if (source == kOutside)
      for (int64_t x = 0; x < axis.out; ++x)
        std::memcpy(out + size_t(x) * pixel, fill, pixel);
    else if (axis.isIdentity)
      std::memcpy(out, call.in[0].as<const std::byte>() + size_t(source) * inBytes, outBytes);
    else
      copy(axis, call.in[0].as<const std::byte>() + size_t(source) * inBytes, out, pixel, fill);
    previous = source;
  }
}

void fillPixel(const KernelCall &call, double value, int64_t count, std::byte *to) {
  std::memset(to, 0, size_t(count) * size_t(dtypeBits(call.out[0].type) / 8));
  dispatchNumber(call.out[0].type,
                 [&]<typename T>() { std::fill_n(reinterpret_cast<T *>(to), count, fromReal<T>(value)); });
}

constexpr int64_t kTileBytes = 32768;

} // namespace

void prepareResize(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<ResizeState>();
  std::string_view bad;
  s.filter.attrs = *readResizeAttrs(call.attrs, bad);
  s.filter.antialias = call.attrs.i("antialias", 0) != 0;
  s.filter.excludeOutside = call.attrs.i("exclude_outside", 0) != 0;
  s.filter.cubicA = call.attrs.f("cubic_coeff_a", -0.75);
  s.extrapolation = call.attrs.f("extrapolation_value", 0);
  const TensorView &x = call.in[0], &y = call.out[0];
  size_t shared = sizeof(ResizeAxis) * size_t(x.rank);
  for (int i = 0; i < x.rank; ++i) {
    s.capacity[i] = y.dim(i) * maxResizeTaps(s.filter.attrs, s.filter.antialias, x.dim(i), y.dim(i));
    shared += axisBytes(s, call, i);
  }
  // A temporary row and a pixel of sums.
  int64_t rowIn = 1, rowOut = 1;
  while (s.firstResized < x.rank - 1 && x.dim(s.firstResized) == y.dim(s.firstResized))
    ++s.firstResized;
  for (int i = s.firstResized; i < x.rank; ++i)
    rowIn *= x.dim(i), rowOut *= y.dim(i);
  work.scratchShared = shared;
  work.scratchPerThread = size_t(rowIn + std::max(rowIn, rowOut)) * sizeof(double) + 64;
  int64_t bytes = dtypeBytes(y.type, y.elements());
  work.phases = 2;
  work.tiles[0] = 1;
  work.tiles[1] = uint32_t(std::clamp<int64_t>(bytes / kTileBytes, 1, 4096));
  work.bytes = double(bytes + dtypeBytes(x.type, x.elements()));
}

void runResize(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<ResizeState>();
  if (call.out[0].elements() == 0)
    return;
  auto *axes = reinterpret_cast<ResizeAxis *>(part.shared);
  int rank = call.in[0].rank;
  if (part.phase == 0) {
    layOutAxes(s, call, part.shared);
    readScales(s, call, axes);
    for (int i = 0; i < rank; ++i)
      buildResizeAxis(s.filter, axes[i]);
    return;
  }
  if (rank == 0) {
    std::memcpy(call.out[0].data, call.in[0].data, size_t(dtypeBits(call.in[0].type) / 8));
    return;
  }
  Rows rows(axes, rank, s.firstResized);
  int64_t begin = rows.count * part.begin / work.tiles[1], end = rows.count * part.end / work.tiles[1];
  if (s.filter.attrs.mode == Interpolation::Nearest) {
    fillPixel(call, s.extrapolation, rows.inner, part.scratch);
    copyRows(call, axes, rows, begin, end, part.scratch);
  } else {
    dispatchNumber(call.in[0].type,
                   [&]<typename T>() { interpolateRows<T>(call, s, axes, rows, begin, end, part.scratch); });
  }
}

} // namespace dspark
