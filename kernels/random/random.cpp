#include "kernels/random/random.h"
#include <algorithm>
#include <numbers>

namespace dspark {

void Philox::block(uint64_t i, uint32_t (&words)[4]) const {
  uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32), c[4] = {uint32_t(i), uint32_t(i >> 32), 0, 0};
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t(0xD2511F53u) * c[0], p1 = uint64_t(0xCD9E8D57u) * c[2];
    uint32_t next[4] = {uint32_t(p1 >> 32) ^ c[1] ^ k0, uint32_t(p1), uint32_t(p0 >> 32) ^ c[3] ^ k1,
                        uint32_t(p0)};
    std::copy(next, next + 4, c);
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  std::copy(c, c + 4, words);
}

namespace {

double unitInterval(uint32_t high, uint32_t low) {
  return double((uint64_t(high) << 21) ^ (low >> 11)) * 0x1p-53;
}

constexpr int64_t kBlock = 8192;

struct RandomState {
  Philox generator;
  int64_t count;
  double a, b; // low and high, or mean and scale
};

void prepareElements(const KernelCall &call, KernelWork &work, const char *a, double aDefault, const char *b,
                     double bDefault) {
  auto *s = new (work.state) RandomState{Philox(call.attrs), call.out[0].elements(), 0, 0};
  s->a = call.attrs.f(a, aDefault), s->b = call.attrs.f(b, bDefault);
  work.tiles[0] = uint32_t((s->count + kBlock - 1) / kBlock);
  work.bytes = double(dtypeBytes(call.out[0].type, s->count));
}

// out[i] = value(i) for the elements of this part.
template <typename Value>
void fill(const KernelCall &call, const RandomState &s, const KernelPart &part, Value value) {
  dispatchNumber(call.out[0].type, [&]<typename T>() {
    int64_t end = std::min(s.count, int64_t(part.end) * kBlock);
    for (int64_t i = part.begin * kBlock; i < end; ++i)
      call.out[0].as<T>()[i] = fromReal<T>(value(i));
  });
}

double realAt(const TensorView &view, int64_t i) {
  double value = 0;
  dispatchFloat(view.type, [&]<typename T>() { value = double(view.as<const T>()[i]); });
  return value;
}

} // namespace

double Philox::uniform(uint64_t i) const {
  uint32_t words[4];
  block(i, words);
  return unitInterval(words[0], words[1]);
}

double Philox::normal(uint64_t i) const {
  uint32_t words[4];
  block(i, words);
  double radius = std::sqrt(-2 * std::log(1 - unitInterval(words[0], words[1])));
  return radius * std::cos(2 * std::numbers::pi * unitInterval(words[2], words[3]));
}

void prepareRandomUniform(const KernelCall &call, KernelWork &work) {
  prepareElements(call, work, "low", 0, "high", 1);
}
void runRandomUniform(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<RandomState>();
  fill(call, s, part, [&](int64_t i) { return s.a + (s.b - s.a) * s.generator.uniform(uint64_t(i)); });
}

void prepareRandomNormal(const KernelCall &call, KernelWork &work) {
  prepareElements(call, work, "mean", 0, "scale", 1);
}
void runRandomNormal(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<RandomState>();
  fill(call, s, part, [&](int64_t i) { return s.a + s.b * s.generator.normal(uint64_t(i)); });
}

void prepareBernoulli(const KernelCall &call, KernelWork &work) { prepareElements(call, work, "", 0, "", 0); }
void runBernoulli(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<RandomState>();
  fill(call, s, part,
       [&](int64_t i) { return s.generator.uniform(uint64_t(i)) < realAt(call.in[0], i) ? 1.0 : 0.0; });
}

// Tiles: rows. A sample is the first class whose running sum of exp(logit - max) exceeds a uniform share of
// the total.
void prepareMultinomial(const KernelCall &call, KernelWork &work) {
  prepareElements(call, work, "", 0, "", 0);
  work.tiles[0] = uint32_t(call.out[0].dim(0));
  work.scratchPerThread = size_t(call.in[0].dim(1)) * sizeof(double);
}
void runMultinomial(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<RandomState>();
  int64_t classes = call.in[0].dim(1), samples = call.out[0].dim(1);
  auto *sums = reinterpret_cast<double *>(part.scratch);
  for (int64_t row = part.begin; row < part.end; ++row) {
    double top = -std::numeric_limits<double>::infinity(), total = 0;
    for (int64_t c = 0; c < classes; ++c)
      top = std::max(top, realAt(call.in[0], row * classes + c));
    for (int64_t c = 0; c < classes; ++c)
      sums[c] = total += std::exp(realAt(call.in[0], row * classes + c) - top);
    for (int64_t i = 0; i < samples; ++i) {
      double share = s.generator.uniform(uint64_t(row * samples + i)) * total;
      int64_t chosen = std::min<int64_t>(std::upper_bound(sums, sums + classes, share) - sums, classes - 1);
      if (call.out[0].type == DType::I64)
        call.out[0].as<int64_t>()[row * samples + i] = chosen;
      else
        call.out[0].as<int32_t>()[row * samples + i] = int32_t(chosen);
    }
  }
}

// Inference copies the data; training keeps an element with probability 1 - ratio and scales it by 1 / (1 -
// ratio).
void prepareDropout(const KernelCall &call, KernelWork &work) { prepareElements(call, work, "", 0, "", 0); }
void runDropout(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<RandomState>();
  bool isTraining = call.has(2) && call.in[2].elements() > 0 && *call.in[2].as<const uint8_t>() != 0;
  double ratio = !isTraining ? 0 : call.has(1) && call.in[1].elements() > 0 ? realAt(call.in[1], 0) : 0.5;
  double scale = ratio < 1 ? 1 / (1 - ratio) : 0;
  uint8_t *mask = call.out.size() > 1 && call.out[1].present() ? call.out[1].as<uint8_t>() : nullptr;
  dispatchFloat(call.out[0].type, [&]<typename T>() {
    int64_t end = std::min(s.count, int64_t(part.end) * kBlock);
    for (int64_t i = part.begin * kBlock; i < end; ++i) {
      bool isKept = ratio == 0 || s.generator.uniform(uint64_t(i)) >= ratio;
      T x = call.in[0].as<const T>()[i];
      call.out[0].as<T>()[i] = ratio == 0 ? x : isKept ? fromReal<T>(double(x) * scale) : T(0);
      if (mask)
        mask[i] = isKept;
    }
  });
}

} // namespace dspark
