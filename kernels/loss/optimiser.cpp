// momentum, adagrad, adam: one step of an optimiser on any number of tensors. Operands: rate, step count,
// then the tensors X, their gradients G, and one or two groups of moments; results: new X, then the new
// moments. Tiles: whole tensors, as these are elementwise and rarely on a critical path here.
#include "kernels/common/element.h"
#include "kernels/loss/loss.h"

namespace dspark {
namespace {

struct OptimiserState {
  uint32_t tensors;
  double norm, normPost, alpha, beta, epsilon, decay;
  bool isNesterov;
};

double rateOf(const KernelCall &call) {
  double rate = 0;
  dispatchFloat(call.in[0].type, [&]<typename T>() { rate = double(*call.in[0].as<const T>()); });
  return rate;
}
double countOf(const KernelCall &call) { return double(*call.in[1].as<const int64_t>()); }

void prepare(const KernelCall &call, KernelWork &work, size_t groups, double alpha, double beta) {
  auto &s = work.make<OptimiserState>();
  s.tensors = uint32_t((call.in.size() - 2) / groups);
  s.norm = call.attrs.f("norm_coefficient", 0), s.normPost = call.attrs.f("norm_coefficient_post", 0);
  s.alpha = call.attrs.f("alpha", alpha), s.beta = call.attrs.f("beta", beta);
  s.epsilon = call.attrs.f("epsilon", 1e-6f), s.decay = call.attrs.f("decay_factor", 0);
  s.isNesterov = call.attrs.s("mode", "standard") == "nesterov";
  work.tiles[0] = s.tensors;
}

// Calls step(x, g, moments..., new x, new moments...) for every element, in T's accumulator type.
template <typename Step>
void forEachElement(const KernelCall &call, const OptimiserState &s, const KernelPart &part, int moments,
                    Step step) {
  for (uint32_t t = part.begin; t < part.end; ++t)
    dispatchFloat(call.in[2 + t].type, [&]<typename T>() {
      using A = Accumulator<T>;
      auto input = [&](uint32_t group) { return call.in[2 + group * s.tensors + t].template as<const T>(); };
      auto output = [&](uint32_t group) { return call.out[group * s.tensors + t].template as<T>(); };
      const T *x = input(0), *g = input(1), *v = input(2), *h = moments == 2 ? input(3) : nullptr;
      T *newX = output(0), *newV = output(1), *newH = moments == 2 ? output(2) : nullptr;
      int64_t count = call.in[2 + t].elements();
      for (int64_t i = 0; i < count; ++i) {
        A value = A(x[i]), gradient = A(s.norm) * value + A(g[i]), first = A(v[i]),
          second = h ? A(h[i]) : A(0);
        step(value, gradient, first, second);
        newX[i] = T(value), newV[i] = T(first);
        if (newH)
          newH[i] = T(second);
      }
    });
}

} // namespace

void prepareMomentum(const KernelCall &call, KernelWork &work) { prepare(call, work, 3, 0, 0); }
void runMomentum(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<OptimiserState>();
  double rate = rateOf(call), beta = countOf(call) > 0 ? s.beta : 1;
  forEachElement(call, s, part, 1, [&]<typename A>(A &x, A g, A &v, A &) {
    v = A(s.alpha) * v + A(beta) * g;
    x -= A(rate) * (s.isNesterov ? g + A(s.alpha) * v : v);
  });
}

void prepareAdagrad(const KernelCall &call, KernelWork &work) { prepare(call, work, 3, 0, 0); }
void runAdagrad(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<OptimiserState>();
  double rate = rateOf(call) / (1 + countOf(call) * s.decay);
  forEachElement(call, s, part, 1, [&]<typename A>(A &x, A g, A &h, A &) {
    h += g * g;
    x -= A(rate) * g / (std::sqrt(h) + A(s.epsilon));
  });
}

void prepareAdam(const KernelCall &call, KernelWork &work) { prepare(call, work, 4, 0.9f, 0.999f); }
void runAdam(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<OptimiserState>();
  double rate = rateOf(call), count = countOf(call);
  if (count > 0)
    rate *= std::sqrt(1 - std::pow(s.beta, count)) / (1 - std::pow(s.alpha, count));
  forEachElement(call, s, part, 2, [&]<typename A>(A &x, A g, A &v, A &h) {
    v = A(s.alpha) * v + A(1 - s.alpha) * g;
    h = A(s.beta) * h + A(1 - s.beta) * g * g;
    x = A(1 - s.normPost) * (x - A(rate) * v / (std::sqrt(h) + A(s.epsilon)));
  });
}

} // namespace dspark
