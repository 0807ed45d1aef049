// The loops of cell.h, included once per ISA level.
#pragma once
#include "kernels/common/contract.h"
#include "kernels/matmul/sums.h"
#include "kernels/rnn/cell.h"

namespace dspark {
namespace {

DSPARK_SIMD vf apply(const CellFunction &f, vf x) {
  vf alpha = splat(f.alpha), beta = splat(f.beta), zero = splat(0), one = splat(1);
  switch (f.kind) {
  case RnnFunction::Sigmoid:
    return sigmoid(x);
  case RnnFunction::Tanh:
    return simd::tanh(x);
  case RnnFunction::Relu:
    return select(x < zero, zero, x);
  case RnnFunction::Affine:
    return alpha * x + beta;
  case RnnFunction::LeakyRelu:
    return select(x < zero, alpha * x, x);
  case RnnFunction::ThresholdedRelu:
    return select(x > alpha, x, zero);
  case RnnFunction::ScaledTanh:
    return alpha * simd::tanh(beta * x);
  case RnnFunction::HardSigmoid: {
    vf y = alpha * x + beta;
    y = select(y < zero, zero, y);
    return select(y > one, one, y);
  }
  case RnnFunction::Elu:
    return select(x < zero, alpha * (simd::exp(x) - one), x);
  case RnnFunction::Softsign:
    return x / (one + simd::abs(x));
  case RnnFunction::Softplus:
    return softplus(x);
  }
  return x;
}

// Calls body(first unit, lanes) for blocks of units.
template <typename F> DSPARK_SIMD void overUnits(int64_t hidden, F body) {
  for (int64_t i = 0; i < hidden; i += kLanes)
    body(i, hidden - i < kLanes ? hidden - i : int64_t(kLanes));
}
DSPARK_SIMD vf read(const float *p, int64_t lanes) { return lanes == kLanes ? load(p) : loadLanes(p, lanes); }
DSPARK_SIMD void write(float *p, vf v, int64_t lanes) {
  if (lanes == kLanes)
    store(p, v);
  else
    storeLanes(p, v, lanes);
}

// x + h of gate g.
DSPARK_SIMD vf gate(const CellStep &step, int g, int64_t i, int64_t lanes) {
  int64_t at = g * step.hidden + i;
  return read(step.x + at, lanes) + read(step.h + at, lanes);
}
DSPARK_SIMD vf clipped(const CellStep &step, vf x) {
  x = select(x < -step.clip, splat(-step.clip), x);
  return select(x > step.clip, splat(step.clip), x);
}

void lstmStep(const CellStep &step) {
  DSPARK_EXPECTS(step.x && step.h && step.cell && step.out && step.functions);
  const CellFunction &f = step.functions[0], &g = step.functions[1], &h = step.functions[2];
  overUnits(step.hidden, [&](int64_t i, int64_t lanes) {
    auto peephole = [&](int which, vf cell) {
      return step.peephole ? read(step.peephole + which * step.hidden + i, lanes) * cell : splat(0);
    };
    vf before = read(step.cell + i, lanes);
    vf in = apply(f, clipped(step, gate(step, 0, i, lanes) + peephole(0, before)));
    vf forget = 1.0f - in;
    if (!step.coupled)
      forget = apply(f, clipped(step, gate(step, 2, i, lanes) + peephole(2, before)));
    vf cell = forget * before + in * apply(g, clipped(step, gate(step, 3, i, lanes)));
    vf out = apply(f, clipped(step, gate(step, 1, i, lanes) + peephole(1, cell)));
    write(step.cell + i, cell, lanes);
    write(step.out + i, out * apply(h, cell), lanes);
  });
}

void gruResetStep(const CellStep &step) {
  DSPARK_EXPECTS(step.x && step.h && step.previous && step.out && step.functions);
  overUnits(step.hidden, [&](int64_t i, int64_t lanes) {
    vf reset = apply(step.functions[0], clipped(step, gate(step, 1, i, lanes)));
    write(step.out + i, reset * read(step.previous + i, lanes), lanes);
  });
}

void gruStep(const CellStep &step) {
  DSPARK_EXPECTS(step.x && step.h && step.previous && step.out && step.functions);
  const CellFunction &f = step.functions[0], &g = step.functions[1];
  overUnits(step.hidden, [&](int64_t i, int64_t lanes) {
    int64_t third = 2 * step.hidden + i;
    vf update = apply(f, clipped(step, gate(step, 0, i, lanes)));
    vf state = read(step.h + third, lanes);
    if (step.resetBias) {
      vf reset = apply(f, clipped(step, gate(step, 1, i, lanes)));
      state = reset * (state + read(step.resetBias + i, lanes));
    }
    vf candidate = apply(g, clipped(step, read(step.x + third, lanes) + state));
    vf before = read(step.previous + i, lanes);
    write(step.out + i, (1.0f - update) * candidate + update * before, lanes);
  });
}

void rnnStep(const CellStep &step) {
  DSPARK_EXPECTS(step.x && step.h && step.out && step.functions);
  overUnits(step.hidden, [&](int64_t i, int64_t lanes) {
    write(step.out + i, apply(step.functions[0], clipped(step, gate(step, 0, i, lanes))), lanes);
  });
}

} // namespace
} // namespace dspark
