// The recurrent operators by their definition, for every float type; the state is kept in the type that sums
// are formed in.
#include "kernels/common/element.h"
#include "kernels/rnn/rnn_f32.h"
#include "kernels/rnn/rnn_plan.h"
#include <algorithm>
#include <cmath>

namespace dspark {
namespace {

template <typename A> A applyScalar(const CellFunction &f, A x) {
  A alpha = f.alpha, beta = f.beta;
  switch (f.kind) {
  case RnnFunction::Sigmoid:
    return 1 / (1 + std::exp(-x));
  case RnnFunction::Tanh:
    return std::tanh(x);
  case RnnFunction::Relu:
    return x < 0 ? A(0) : x;
  case RnnFunction::Affine:
    return alpha * x + beta;
  case RnnFunction::LeakyRelu:
    return x < 0 ? alpha * x : x;
  case RnnFunction::ThresholdedRelu:
    return x > alpha ? x : A(0);
  case RnnFunction::ScaledTanh:
    return alpha * std::tanh(beta * x);
  case RnnFunction::HardSigmoid:
    return std::clamp(alpha * x + beta, A(0), A(1));
  case RnnFunction::Elu:
    return x < 0 ? alpha * (std::exp(x) - 1) : x;
  case RnnFunction::Softsign:
    return x / (1 + std::fabs(x));
  case RnnFunction::Softplus:
    return std::max(x, A(0)) + std::log1p(std::exp(-std::fabs(x)));
  }
  return x;
}

// Shared scratch holds per direction and batch row: gates, hidden, cell and the next hidden state.
template <typename T> class RowOfBatch {
  using A = Accumulator<T>;

public:
  RowOfBatch(const KernelCall &call, const RnnPlan &plan, int64_t d, int64_t b, A *scratch)
      : call(call), plan(plan), d(d), b(b), fromX(scratch), fromH(fromX + plan.width()),
        h(fromH + plan.width()), c(h + plan.hidden), next(c + plan.hidden), f(plan.functions(d)) {}

  void run() {
    int64_t length = plan.length(call, b), row = plan.stateRow(d, b) * plan.hidden;
    for (int64_t i = 0; i < plan.hidden; ++i) {
      h[i] = call.has(5) ? A(call.in[5].as<T>()[row + i]) : A(0);
      c[i] = call.has(6) ? A(call.in[6].as<T>()[row + i]) : A(0);
    }
    for (int64_t s = 0; s < plan.steps; ++s) {
      bool rests = s >= length;
      int64_t t = rests ? s : plan.runsBackwards(d) ? length - 1 - s : s;
      if (!rests)
        step(t);
      for (int64_t i = 0; i < plan.hidden && call.out[0].present(); ++i)
        call.out[0].as<T>()[plan.yRow(t, d, b) * plan.hidden + i] = rests ? T(0) : T(h[i]);
    }
    for (size_t k = 1; k < call.out.size(); ++k)
      for (int64_t i = 0; i < plan.hidden && call.out[k].present(); ++i)
        call.out[k].as<T>()[row + i] = T(k == 1 ? h[i] : c[i]);
  }

private:
  A bias(int64_t i) const { return call.has(3) ? A(call.in[3].as<T>()[d * 2 * plan.width() + i]) : A(0); }
  A dot(size_t operand, int64_t row, int64_t depth, auto &&value) const {
    const T *matrix = call.in[operand].as<T>() + (d * plan.width() + row) * depth;
    A sum = 0;
    for (int64_t k = 0; k < depth; ++k)
      sum += A(matrix[k]) * value(k);
    return sum;
  }
  A activate(int which, A x) const {
    return applyScalar<A>(f[which], std::clamp(x, A(-plan.clip), A(plan.clip)));
  }

  void step(int64_t t) {
    const T *x = call.in[0].as<T>() + plan.xRow(t, b) * plan.input;
    for (int64_t g = 0; g < plan.width(); ++g) {
      fromX[g] = dot(1, g, plan.input, [&](int64_t k) { return A(x[k]); }) + bias(g);
      fromH[g] = dot(2, g, plan.hidden, [&](int64_t k) { return h[k]; }) + bias(plan.width() + g);
    }
    int64_t n = plan.hidden;
    for (int64_t i = 0; i < n; ++i)
      next[i] = plan.gates == 4 ? lstm(i) : plan.gates == 1 ? activate(0, fromX[i] + fromH[i]) : gru(i);
    std::copy(next, next + n, h);
  }

  A lstm(int64_t i) {
    int64_t n = plan.hidden;
    auto gate = [&](int64_t g) { return fromX[g * n + i] + fromH[g * n + i]; };
    auto peephole = [&](int64_t which) {
      return call.has(7) ? A(call.in[7].as<T>()[(d * 3 + which) * n + i]) : A(0);
    };
    A in = activate(0, gate(0) + peephole(0) * c[i]);
    A forget = plan.coupled ? 1 - in : activate(0, gate(2) + peephole(2) * c[i]);
    c[i] = forget * c[i] + in * activate(1, gate(3));
    A out = activate(0, gate(1) + peephole(1) * c[i]);
    return out * applyScalar<A>(f[2], c[i]);
  }

  A gru(int64_t i) const {
    int64_t n = plan.hidden;
    auto reset = [&](int64_t k) { return activate(0, fromX[n + k] + fromH[n + k]); };
    A update = activate(0, fromX[i] + fromH[i]);
    A state = plan.linearBeforeReset ? reset(i) * fromH[2 * n + i] : dot(2, 2 * n + i, n, [&](int64_t k) {
                                                                       return reset(k) * h[k];
                                                                     }) + bias(plan.width() + 2 * n + i);
    A candidate = activate(1, fromX[2 * n + i] + state);
    return (1 - update) * candidate + update * h[i];
  }

  const KernelCall &call;
  const RnnPlan &plan;
  int64_t d, b;
  A *fromX, *fromH, *h, *c, *next;
  const CellFunction *f;
};

} // namespace

bool acceptsRnnReference(const KernelCall &call) { return call.attrs.s("packed", "").empty(); }

template <int gates> void prepareRnnReference(const KernelCall &call, KernelWork &work) {
  RnnPlan &plan = work.make<RnnPlan>();
  plan.read(call, gates);
  work.scratchPerThread = size_t(2 * plan.width() + 3 * plan.hidden) * sizeof(double);
  work.tiles[0] = uint32_t(plan.directions * plan.batch);
  work.flops = plan.flops();
}
template void prepareRnnReference<4>(const KernelCall &, KernelWork &);
template void prepareRnnReference<3>(const KernelCall &, KernelWork &);
template void prepareRnnReference<1>(const KernelCall &, KernelWork &);

void runRnnReference(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const RnnPlan &plan = work.get<RnnPlan>();
  for (uint32_t tile = part.begin; tile < part.end; ++tile)
    dispatchFloat(call.in[0].type, [&]<typename T>() {
      auto *scratch = reinterpret_cast<Accumulator<T> *>(part.scratch);
      RowOfBatch<T>(call, plan, tile / plan.batch, tile % plan.batch, scratch).run();
    });
}

} // namespace dspark
