// conv's rows of Winograd's transform along one axis. Their error is bounded by the magnitudes inside the
// transform: with the absolute values of winograd_line.h's matrices, each output lies within (I + 18) eps of
// the exact sum, times M = |At| [(|G||g|) * (|Bt||d|)] summed over the I input channels. 18 are the roundings
// on the way: at most 4 in the input's transform, 7 in the filter's (a constant, up to four products, two
// sums), 5 in the output's, and two for bias and residual.
#include "test/kernels/conv/winograd_case.h"
#include <array>

namespace dspark {
namespace {

using namespace test;

constexpr double kEps = 1.0 / (1 << 24);
constexpr double kPoints[7] = {0, 1, -1, 2, -2, 0.5, -0.5};
constexpr double kScales[7] = {1, -2.0 / 9, -2.0 / 9, 1.0 / 90, 1.0 / 90, 32.0 / 45, 32.0 / 45};
constexpr double kInput[8][8] = {{1, 0, -5.25, 0, 5.25, 0, -1, 0},      {0, 1, 1, -4.25, -4.25, 1, 1, 0},
                                 {0, -1, 1, 4.25, -4.25, -1, 1, 0},     {0, 0.5, 0.25, -2.5, -1.25, 2, 1, 0},
                                 {0, -0.5, 0.25, 2.5, -1.25, -2, 1, 0}, {0, 2, 4, -2.5, -5, 0.5, 1, 0},
                                 {0, -2, 4, 2.5, -5, -0.5, 1, 0},       {0, -1, 0, 5.25, 0, -5.25, 0, 1}};

// A line of `length` pixels; `beside` lines lie side by side: images are [length, beside].
struct Case {
  int64_t batch, length, beside, inputs, outputs, taps, pad = 0, dilation = 1;

  int64_t outs() const { return 9 - taps; }
  int64_t outLength() const { return length + 2 * pad - (taps - 1) * dilation; }
};

Tensor packed(const Tensor &w) { return packedFilters("panel16", w); }

AttrList attrsOf(const Case &c) {
  AttrList attrs;
  attrs.set("layout", "nhwc")
      .set("packed", "panel16")
      .set("pads", {c.pad, 0, c.pad, 0})
      .set("dilations", {c.dilation, 1});
  return attrs;
}

std::vector<const Kernel *> lineRows() { return rowsNamed("conv", "winograd_line"); }

struct Expected {
  double value = 0, magnitude = 0;
};

// |a_p^i|
double power(int point, int64_t i) {
  double value = 1;
  for (int64_t k = 0; k < i; ++k)
    value *= std::fabs(kPoints[point]);
  return value;
}

// Output `position` of a line: the i-th of the tile that begins i dilated positions before it.
Expected expected(const Case &c, const Tensor &x, const Tensor &w, int64_t n, int64_t position, int64_t line,
                  int64_t o) {
  int64_t i = position / c.dilation % c.outs(), first = position - i * c.dilation - c.pad;
  auto at = [&](int64_t k, int64_t channel) {
    int64_t p = first + k * c.dilation;
    return p < 0 || p >= c.length
               ? 0.0
               : double(x.as<float>()[((n * c.length + p) * c.beside + line) * c.inputs + channel]);
  };
  Expected e;
  for (int64_t channel = 0; channel < c.inputs; ++channel) {
    const float *g = w.as<float>() + (o * c.inputs + channel) * c.taps;
    for (int64_t k = 0; k < c.taps; ++k)
      e.value += at(i + k, channel) * double(g[k]);
    for (int point = 0; point < 8; ++point) {
      double input = 0, filter = point < 7 ? 0 : std::fabs(double(g[c.taps - 1]));
      for (int64_t k = 0; k < 8; ++k)
        input += std::fabs(kInput[point][k] * at(k, channel));
      for (int64_t k = 0; point < 7 && k < c.taps; ++k)
        filter += std::fabs(kScales[point] * double(g[k])) * power(point, k);
      double output = point < 7 ? power(point, i) : double(i == c.outs() - 1);
      e.magnitude += output * input * filter;
    }
  }
  return e;
}

void check(const Case &c, bool hasBias, bool hasResidual) {
  std::mt19937 rng(13);
  Tensor w = uniform({c.outputs, c.inputs, c.taps, 1}, rng);
  std::vector<Tensor> in(4);
  in[0] = uniform({c.batch, c.length, c.beside, c.inputs}, rng);
  in[1] = packed(w);
  if (hasBias)
    in[2] = uniform({c.outputs}, rng);
  if (hasResidual)
    in[3] = uniform({c.batch, c.outLength(), c.beside, c.outputs}, rng);
  AttrList attrs = attrsOf(c);
  attrs.set("activation", "relu");
  std::vector<Tensor> results;
  for (const Kernel *row : lineRows())
    results.push_back(runRow(*row, in, attrs)[0]);
  int64_t index = 0;
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t position = 0; position < c.outLength(); ++position)
      for (int64_t line = 0; line < c.beside; ++line)
        for (int64_t o = 0; o < c.outputs; ++o, ++index) {
          Expected e = expected(c, in[0], w, n, position, line, o);
          double want = e.value + (hasBias ? double(in[2].as<float>()[o]) : 0) +
                        (hasResidual ? double(in[3].as<float>()[index]) : 0);
          double bound = double(c.inputs + 18) * kEps * (e.magnitude + std::fabs(want));
          for (const Tensor &y : results)
            ASSERT_NEAR(double(y.as<float>()[index]), std::max(want, 0.0), bound)
                << "image " << n << " position " << position << " line " << line << " channel " << o;
        }
}

TEST(ConvWinogradLine, Sums) {
  check({1, 100, 1, 40, 40, 5, 2}, true, true);
  check({2, 61, 3, 64, 61, 3, 1}, true, false);
  check({1, 121, 1, 96, 100, 7, 3}, false, true);
  check({3, 157, 1, 49, 64, 3, 0}, false, false);
}

TEST(ConvWinogradLine, DilatedLinesOfUnequalLength) {
  check({1, 141, 1, 64, 57, 3, 3, 3}, true, true);
  check({2, 77, 2, 48, 48, 5, 10, 5}, true, false);
  check({1, 164, 1, 100, 112, 7, 9, 3}, false, false);
}

// As for two axes: the error is 2.4 times that of the direct sum; four leaves room for the draw.
TEST(ConvWinogradLine, ErrorIsThatOfTheDirectSum) {
  for (int64_t taps : {3, 5, 7}) {
    std::mt19937 rng(5);
    Case c{1, 240, 1, 128, 64, taps, taps / 2};
    Tensor w = uniform({c.outputs, c.inputs, taps, 1}, rng);
    std::vector<Tensor> in = {uniform({1, c.length, 1, c.inputs}, rng), packed(w)};
    std::vector<double> exact;
    for (int64_t i = 0; i < c.length * c.outputs; ++i)
      exact.push_back(expected(c, in[0], w, 0, i / c.outputs, 0, i % c.outputs).value);
    expectErrorOfDirectSum(lineRows(), in, attrsOf(c), exact, 4);
  }
}

TEST(ConvWinogradLine, BitsDoNotDependOnBatchOrThreads) {
  std::mt19937 rng(3);
  Case c{7, 203, 1, 48, 50, 5, 2};
  std::vector<Tensor> in = {uniform({c.batch, c.length, 1, c.inputs}, rng),
                            packed(uniform({c.outputs, c.inputs, c.taps, 1}, rng))};
  expectBitsOfFirstImage(lineRows(), in, attrsOf(c));
}

} // namespace
} // namespace dspark
