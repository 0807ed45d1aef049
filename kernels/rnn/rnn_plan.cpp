#include "kernels/rnn/rnn_plan.h"
#include <algorithm>
#include <limits>

namespace dspark {

void RnnPlan::read(const KernelCall &call, int gateCount) {
  const TensorView &x = call.in[0], &r = call.in[2];
  gates = gateCount;
  isBatchFirst = call.attrs.i("layout", 0) != 0;
  steps = x.dim(isBatchFirst ? 1 : 0);
  batch = x.dim(isBatchFirst ? 0 : 1);
  input = x.dim(2);
  hidden = r.dim(2);
  std::string_view direction = call.attrs.s("direction", "forward");
  directions = direction == "bidirectional" ? 2 : 1;
  isReverse = direction == "reverse";
  isPacked = !call.attrs.s("packed", "").empty();
  coupled = call.attrs.i("input_forget", 0) != 0;
  linearBeforeReset = call.attrs.i("linear_before_reset", 0) != 0;
  double bound = call.attrs.f("clip", 0);
  clip = bound > 0 ? float(bound) : std::numeric_limits<float>::infinity();
  activations.read(call.attrs, functionsPerCell(), int(directions));
}

int64_t RnnPlan::length(const KernelCall &call, int64_t b) const {
  return call.has(4) ? std::clamp<int64_t>(call.in[4].as<int32_t>()[b], 0, steps) : steps;
}

void RnnPlan::addBiases(const KernelCall &call, int64_t direction, float *bias) const {
  const float *b = call.has(3) ? call.in[3].as<float>() + direction * 2 * width() : nullptr;
  int64_t both = gates == 3 && linearBeforeReset ? 2 * hidden : width();
  for (int64_t i = 0; i < width(); ++i)
    bias[i] = b ? b[i] + (i < both ? b[width() + i] : 0) : 0;
}

double RnnPlan::flops() const {
  return 2.0 * double(directions) * double(steps) * double(batch) * double(width()) * double(input + hidden);
}

} // namespace dspark
