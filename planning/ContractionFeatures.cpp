#include "planning/ContractionFeatures.h"
#include <algorithm>
#include <cmath>

namespace dspark {
namespace {

constexpr double kPanel = 16;   // columns of a panel; the last one may be half
constexpr double kTileRows = 6; // of a register tile at AVX2; at other levels the fit absorbs the ratio
// A tile of fewer rows waits for the latency of its additions as long as one of four rows computes.
constexpr double kLatencyRows = 4;

double elementsOf(const TensorView &view) { return view.present() ? double(view.elements()) : 0; }
double last(const TensorView &view) {
  return view.present() && view.rank > 0 ? std::max<double>(1, double(view.dim(view.rank - 1))) : 1;
}

// A product [m, k] x [k, n] in register tiles; `runs` restarts of the inner loop per tile.
void product(CostFeatures &f, double m, double n, double k, double batches, double runs = 1) {
  double columns = std::ceil(n / (kPanel / 2)) * kPanel / 2, panels = std::ceil(n / kPanel);
  double rest = std::fmod(m, kTileRows), rows = m - rest + (rest > 0 ? std::max(rest, kLatencyRows) : 0);
  double tiles = std::ceil(m / kTileRows) * panels * batches;
  f.work = 2 * rows * columns * k * batches;
  f.steps = tiles * k;
  f.starts = tiles * runs;
}

// How many of a filter's taps along one axis lie inside the input, on average over the outputs.
double tapsInside(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad) {
  if (out <= 0 || out > 65536)
    return double(kernel);
  double sum = 0;
  for (int64_t o = 0; o < out; ++o)
    for (int64_t k = 0; k < kernel; ++k) {
      int64_t at = o * stride - pad + k * dilation;
      sum += at >= 0 && at < in;
    }
  return sum / double(out);
}

int64_t entry(std::span<const int64_t> list, size_t i, int64_t otherwise) {
  return i < list.size() ? list[i] : otherwise;
}

struct Sizes {
  double outputs, inputs, pixels, taps, rowTaps, group;
};

// One multiply-add per output and tap inside the image, channels in vector lanes.
void depthwise(CostFeatures &f, const KernelCall &call, const TensorView &w, const Sizes &s,
               int firstSpatial) {
  const TensorView &x = call.in[0], &y = call.out[0];
  std::span<const int64_t> strides = call.attrs.ints("strides"), dilations = call.attrs.ints("dilations"),
                           pads = call.attrs.ints("pads");
  double taps = 1;
  for (int i = 0; i + 2 < w.rank; ++i)
    taps *=
        tapsInside(x.dim(firstSpatial + i), y.dim(firstSpatial + i), w.dim(i + 2),
                   entry(strides, size_t(i), 1), entry(dilations, size_t(i), 1), entry(pads, size_t(i), 0));
  double vectors = std::ceil(s.outputs / 8);
  f.work = 2 * s.pixels * taps * vectors * 8;
  f.steps = s.pixels * vectors;
  f.starts = s.pixels / std::max<double>(1, double(y.dim(firstSpatial + y.rank - 3)));
}

// So many products of transformed tiles and filters.
void winograd(CostFeatures &f, double tiles, double points, const Sizes &s) {
  product(f, tiles, s.outputs, s.inputs, points);
  f.heavy = tiles * (s.inputs + s.outputs); // transforms of tiles
  f.starts = s.inputs * s.outputs;          // transforms of filters
}

// Both parts have terms of their own: the product its panel rows, which are steps, the taps their work.
void expandDepthwise(CostFeatures &f, const KernelCall &call, const Sizes &s) {
  const TensorView &x = call.in[0];
  CostFeatures expansion;
  product(expansion, elementsOf(x) / std::max(1.0, s.inputs), s.outputs, s.inputs, 1);
  depthwise(f, call, call.in[3], s, 1);
  f.steps = expansion.steps;
  f.starts += expansion.starts;
}

} // namespace

void matmulFeatures(CostFeatures &f, const KernelCall &call) {
  const TensorView &a = call.in[0], &y = call.out[0];
  bool isTransposed = call.attrs.i("trans_a", 0) != 0 && a.rank > 1;
  double k = a.rank == 0 ? 1 : double(a.dim(a.rank - (isTransposed ? 2 : 1)));
  double n = last(y), m = elementsOf(y) / n, batches = 1;
  for (const TensorView &other : call.out.subspan(1))
    n += last(other);
  // Only a B without batch dims makes all rows of A one tall matrix.
  if (call.input(1).rank > 2 && y.rank > 1) {
    double rows = double(y.dim(y.rank - 2));
    batches = m / std::max(1.0, rows);
    m = rows;
  }
  product(f, m, n, k, batches);
  // B as it lies is first copied into panels, once per tile of rows.
  if (call.attrs.s("packed", "").empty())
    f.heavy = k * n * batches / kPanel * std::max(1.0, f.parts / batches);
}

void convFeatures(CostFeatures &f, const KernelCall &call, const KernelWork &work) {
  const TensorView &x = call.in[0], &y = call.out[0];
  bool isQlinear = call.in.size() > 3 && call.in[1].rank <= 1,
       isExpand = f.key.starts_with("expand_depthwise");
  const TensorView &w = call.input(isQlinear || isExpand ? 3 : 1);
  bool isLast = call.attrs.s("layout", "nchw") == "nhwc";
  if (x.rank < 3 || w.rank != x.rank || y.rank != x.rank)
    return;
  Sizes s;
  s.outputs = double(y.dim(isLast ? y.rank - 1 : 1));
  s.inputs = double(x.dim(isLast ? x.rank - 1 : 1));
  s.pixels = elementsOf(y) / std::max(1.0, s.outputs);
  s.group = std::max<double>(1, double(call.attrs.i("group", 1)));
  s.rowTaps = double(w.dim(w.rank - 1));
  s.taps = double(w.elements(2, w.rank));
  int firstSpatial = isLast ? 1 : 2;
  std::string_view name = f.key;
  auto is = [&](std::string_view word) { return name.find(word) != name.npos; };
  if (isExpand)
    return expandDepthwise(f, call, s);
  if (is("depthwise"))
    return depthwise(f, call, w, s, firstSpatial);
  if (is("winograd_line"))
    return winograd(f, std::ceil(s.pixels / std::max(1.0, 9 - s.taps)), 8, s);
  if (is("winograd") && y.rank == 4) {
    double rows = std::ceil(double(y.dim(firstSpatial)) / 4);
    return winograd(f, double(y.dim(0)) * rows * std::ceil(double(y.dim(firstSpatial + 1)) / 4), 36, s);
  }
  if (is("transpose"))
    product(f, elementsOf(x) / std::max(1.0, s.inputs), s.outputs * s.taps / s.group, s.inputs / s.group,
            s.group);
  else // the taps of a filter's row are one run of terms
    product(f, s.pixels, s.outputs / s.group, s.taps * s.inputs / s.group, s.group,
            s.taps / std::max(1.0, s.rowTaps));
  if (work.phases > 1)
    f.heavy = (elementsOf(x) + elementsOf(y)) / kPanel; // operands that are rearranged
  if (is("qlinear") || is("integer"))                   // rows of bytes are gathered, a run per row of taps
    f.heavy += s.pixels * s.taps / std::max(1.0, s.rowTaps) * (1 + s.rowTaps * s.inputs / kPanel);
}

} // namespace dspark
