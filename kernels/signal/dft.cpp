// dft and stft on the transforms of fft.h. Phase 0 builds the tables, whose length may depend on an operand;
// phase 1 transforms lines (dft) or frames (stft), one or more per tile, in double.
#include "kernels/signal/fft.h"
#include "kernels/signal/signal.h"
#include <algorithm>

namespace dspark {
namespace {

struct DftState {
  int64_t maxLength; // what tables and scratch are sized for
  int64_t lines, linesPerTile;
  bool inverse, oneSided;
};

// A one-sided result of k bins comes from length 2k - 2 or 2k - 1.
int64_t longest(bool isHalf, int64_t bins) { return isHalf ? std::max<int64_t>(1, 2 * bins - 1) : bins; }

void sizeWork(KernelWork &work, DftState &s) {
  s.linesPerTile = std::max<int64_t>(1, 2048 / std::max<int64_t>(1, s.maxLength));
  work.phases = 2;
  work.tiles[0] = 1;
  work.tiles[1] = uint32_t((s.lines + s.linesPerTile - 1) / s.linesPerTile);
  work.scratchShared = FftTables::bytes(std::max<int64_t>(1, s.maxLength));
  work.scratchPerThread = size_t(FftTables::workSize(std::max<int64_t>(1, s.maxLength))) * sizeof(Complex);
  work.flops =
      5.0 * double(s.lines) * double(s.maxLength) * std::log2(double(std::max<int64_t>(2, s.maxLength)));
}

template <typename T> Complex loadSample(const T *x, bool isComplex) {
  return {double(x[0]), isComplex ? double(x[1]) : 0};
}
template <typename T> void storeSample(T *y, Complex value) {
  y[0] = fromReal<T>(value.re);
  y[1] = fromReal<T>(value.im);
}

int dftAxis(const KernelCall &call) { return normalizeAxis(scalarOperand(call, 2, -2), call.in[0].rank); }

// One line along the axis: `x` and `y` step by `stride` samples.
template <typename T>
void dftLine(const DftState &s, const FftTables &tables, const T *x, int64_t xCount, bool isComplex, T *y,
             int64_t yCount, int64_t stride, Complex *data) {
  int64_t n = tables.n, width = isComplex ? 2 : 1, used = std::min(xCount, n);
  if (s.inverse && s.oneSided) {
    // The missing half is the conjugate of the given one; the imaginary parts at 0 and n/2 do not count.
    used = std::min(used, n / 2 + 1);
    std::fill(data, data + n, Complex{0, 0});
    for (int64_t k = 0; k < used; ++k) {
      Complex value = loadSample(x + k * stride * width, isComplex);
      int64_t mirror = k ? n - k : 0;
      if (mirror == k)
        value.im = 0;
      data[k] = value;
      data[mirror] = {value.re, mirror == k ? 0 : -value.im};
    }
  } else {
    for (int64_t k = 0; k < used; ++k)
      data[k] = loadSample(x + k * stride * width, isComplex);
    std::fill(data + used, data + n, Complex{0, 0});
  }
  tables.transform(data, s.inverse);
  for (int64_t k = 0; k < yCount; ++k)
    if (s.inverse && s.oneSided)
      y[k * stride] = fromReal<T>(data[k].re);
    else
      storeSample(y + k * stride * 2, data[k]);
}

} // namespace

void prepareDft(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<DftState>();
  s.inverse = call.attrs.i("inverse", 0) != 0, s.oneSided = call.attrs.i("onesided", 0) != 0;
  // The axis is an operand: size for the longest line, and count lines at run time within the tiles of the
  // shortest.
  int64_t largest = 1, total = 1, smallest = INT64_MAX;
  const TensorView &y = call.out[0];
  for (int i = 0; i < y.rank - 1; ++i) {
    bool mayBeAxis = call.has(2) || i == y.rank - 2;
    largest = mayBeAxis ? std::max(largest, y.dim(i)) : largest;
    smallest = mayBeAxis ? std::min(smallest, y.dim(i)) : smallest;
    total *= y.dim(i);
  }
  s.maxLength = longest(s.oneSided && !s.inverse, largest);
  s.lines = smallest > 0 ? total / smallest : 0;
  sizeWork(work, s);
}

void runDft(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<DftState>();
  const TensorView &x = call.in[0], &y = call.out[0];
  int axis = dftAxis(call);
  if (part.phase == 0) {
    int64_t otherwise = s.inverse && s.oneSided ? 2 * (x.dim(axis) - 1) : x.dim(axis);
    FftTables::build(
        std::clamp<int64_t>(scalarOperand(call, 1, otherwise), 1, std::max<int64_t>(1, s.maxLength)),
        part.shared);
    return;
  }
  const auto &tables = *reinterpret_cast<const FftTables *>(part.shared);
  int64_t stride = y.elements(axis + 1, y.rank - 1), lines = y.elements(0, axis) * stride;
  int64_t xCount = x.dim(axis), yCount = std::min(y.dim(axis), tables.n), yWidth = y.dim(y.rank - 1);
  bool isComplex = x.dim(x.rank - 1) == 2;
  auto *data = reinterpret_cast<Complex *>(part.scratch);
  dispatchFloat(x.type, [&]<typename T>() {
    int64_t end = std::min(lines, int64_t(part.end) * s.linesPerTile);
    for (int64_t line = part.begin * s.linesPerTile; line < end; ++line) {
      int64_t outer = line / stride, inner = line % stride;
      dftLine(s, tables, x.as<const T>() + (outer * xCount * stride + inner) * (isComplex ? 2 : 1), xCount,
              isComplex, y.as<T>() + (outer * y.dim(axis) * stride + inner) * yWidth, yCount, stride, data);
    }
  });
}

void prepareStft(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<DftState>();
  const TensorView &y = call.out[0];
  s.oneSided = call.attrs.i("onesided", 1) != 0;
  s.maxLength = longest(s.oneSided, y.dim(2));
  s.lines = y.dim(0) * y.dim(1);
  sizeWork(work, s);
}

void runStft(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<DftState>();
  const TensorView &x = call.in[0], &y = call.out[0];
  if (part.phase == 0) {
    int64_t otherwise = call.has(2) ? call.in[2].dim(0) : x.dim(1);
    FftTables::build(std::clamp<int64_t>(scalarOperand(call, 3, otherwise), 1, s.maxLength), part.shared);
    return;
  }
  const auto &tables = *reinterpret_cast<const FftTables *>(part.shared);
  int64_t frames = y.dim(1), bins = std::min(y.dim(2), tables.n), samples = x.dim(1),
          step = scalarOperand(call, 1, 1);
  bool isComplex = x.rank == 3 && x.dim(2) == 2;
  auto *data = reinterpret_cast<Complex *>(part.scratch);
  dispatchFloat(x.type, [&]<typename T>() {
    const T *window = call.has(2) ? call.in[2].as<const T>() : nullptr;
    int64_t end = std::min(s.lines, int64_t(part.end) * s.linesPerTile);
    for (int64_t line = part.begin * s.linesPerTile; line < end; ++line) {
      int64_t first = line % frames * step;
      const T *from = x.as<const T>() + (line / frames * samples + first) * (isComplex ? 2 : 1);
      for (int64_t k = 0; k < tables.n; ++k) {
        double weight = window ? double(window[k]) : 1;
        Complex value =
            first + k < samples ? loadSample(from + k * (isComplex ? 2 : 1), isComplex) : Complex{0, 0};
        data[k] = {value.re * weight, value.im * weight};
      }
      tables.transform(data, false);
      T *to = y.as<T>() + line * y.dim(2) * 2;
      for (int64_t k = 0; k < bins; ++k)
        storeSample(to + 2 * k, data[k]);
    }
  });
}

} // namespace dspark
