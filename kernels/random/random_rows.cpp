#include "kernels/common/families.h"
#include "kernels/random/random.h"

namespace dspark {

std::span<const Kernel> randomKernels() {
  static constexpr Kernel kRows[] = {
      {"random_uniform", "random_uniform_reference", Isa::Baseline, nullptr, prepareRandomUniform,
       runRandomUniform},
      {"random_uniform_like", "random_uniform_like_reference", Isa::Baseline, nullptr, prepareRandomUniform,
       runRandomUniform},
      {"random_normal", "random_normal_reference", Isa::Baseline, nullptr, prepareRandomNormal,
       runRandomNormal},
      {"random_normal_like", "random_normal_like_reference", Isa::Baseline, nullptr, prepareRandomNormal,
       runRandomNormal},
      {"bernoulli", "bernoulli_reference", Isa::Baseline, nullptr, prepareBernoulli, runBernoulli},
      {"multinomial", "multinomial_reference", Isa::Baseline, nullptr, prepareMultinomial, runMultinomial},
      {"dropout", "dropout_reference", Isa::Baseline, nullptr, prepareDropout, runDropout},
  };
  return kRows;
}

} // namespace dspark
