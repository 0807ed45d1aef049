// hann_window, hamming_window, blackman_window and mel_weight_matrix: small tables that models compute at run
// time.
#include "kernels/signal/signal.h"
#include <algorithm>
#include <numbers>

namespace dspark {
namespace {

constexpr int64_t kBlock = 4096;

struct WindowState {
  int64_t size;
  bool periodic;
};

// Element i is value(2 pi i / N); N is the size, or one less for a symmetric window.
template <typename Value>
void fillWindow(const KernelCall &call, const KernelWork &work, const KernelPart &part, Value value) {
  const auto &s = work.get<WindowState>();
  double period = double(s.periodic ? s.size : s.size - 1);
  dispatchNumber(call.out[0].type, [&]<typename T>() {
    int64_t end = std::min(s.size, int64_t(part.end) * kBlock);
    for (int64_t i = part.begin * kBlock; i < end; ++i) {
      // A symmetric window of one point is its peak.
      double angle = period > 0 ? 2 * std::numbers::pi * double(i) / period : std::numbers::pi;
      double y = value(angle);
      // Integer windows are truncated, as a cast is.
      call.out[0].as<T>()[i] = std::is_integral_v<T> ? fromReal<T>(std::trunc(y)) : fromReal<T>(y);
    }
  });
}

double melOf(double hertz) { return 2595 * std::log1p(hertz / 700) / std::numbers::ln10; }
double hertzOf(double mel) { return 700 * std::expm1(mel / 2595 * std::numbers::ln10); }

// Spectrum bins of the left, centre and right edge of each triangle.
class MelEdges {
public:
  MelEdges(const KernelCall &call, int64_t melBins)
      : scale(double(scalarOperand(call, 1, 1) + 1) / double(scalarOperand(call, 2, 1))),
        low(melOf(realOperand(call, 3))), step((melOf(realOperand(call, 4)) - low) / double(melBins + 2)) {}

  // Frequencies beyond the spectrum have bins beyond its end; the limit only keeps the conversion defined.
  int64_t at(int64_t i) const {
    double bin = std::floor(hertzOf(double(i) * step + low) * scale);
    return bin > 0 ? int64_t(std::min(bin, 0x1p40)) : 0;
  }

private:
  static double realOperand(const KernelCall &call, size_t i) {
    double value = 0;
    dispatchFloat(call.in[i].type, [&]<typename T>() { value = double(*call.in[i].as<const T>()); });
    return value;
  }

  double scale, low, step;
};

double melWeight(int64_t bin, int64_t left, int64_t centre, int64_t right) {
  if (bin == centre)
    return 1;
  if (bin >= left && bin < centre)
    return double(bin - left) / double(centre - left);
  return bin > centre && bin < right ? double(right - bin) / double(right - centre) : 0;
}

} // namespace

void prepareWindow(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<WindowState>();
  s = {call.out[0].dim(0), call.attrs.i("periodic", 1) != 0};
  work.tiles[0] = uint32_t((s.size + kBlock - 1) / kBlock);
}

void runHannWindow(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  fillWindow(call, work, part, [](double a) { return 0.5 - 0.5 * std::cos(a); });
}
void runHammingWindow(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  fillWindow(call, work, part, [](double a) { return 25.0 / 46 - 21.0 / 46 * std::cos(a); });
}
void runBlackmanWindow(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  fillWindow(call, work, part, [](double a) { return 0.42 - 0.5 * std::cos(a) + 0.08 * std::cos(2 * a); });
}

void prepareMelWeightMatrix(const KernelCall &call, KernelWork &work) { work.tiles[0] = 1; }

void runMelWeightMatrix(const KernelCall &call, const KernelWork &, const KernelPart &) {
  int64_t bins = call.out[0].dim(0), melBins = call.out[0].dim(1);
  MelEdges edges(call, melBins);
  dispatchNumber(call.out[0].type, [&]<typename T>() {
    T *out = call.out[0].as<T>();
    for (int64_t mel = 0; mel < melBins; ++mel) {
      int64_t left = edges.at(mel), centre = edges.at(mel + 1), right = edges.at(mel + 2);
      for (int64_t bin = 0; bin < bins; ++bin) {
        double y = melWeight(bin, left, centre, right);
        out[bin * melBins + mel] = std::is_integral_v<T> ? fromReal<T>(std::trunc(y)) : fromReal<T>(y);
      }
    }
  });
}

} // namespace dspark
