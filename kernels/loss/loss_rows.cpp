#include "kernels/common/families.h"
#include "kernels/loss/loss.h"

namespace dspark {

std::span<const Kernel> lossKernels() {
  static constexpr Kernel kRows[] = {
      {"negative_log_likelihood_loss", "negative_log_likelihood_loss_reference", Isa::Baseline, nullptr,
       prepareNegativeLogLikelihood, runNegativeLogLikelihood},
      {"softmax_cross_entropy_loss", "softmax_cross_entropy_loss_reference", Isa::Baseline, nullptr,
       prepareSoftmaxCrossEntropy, runSoftmaxCrossEntropy},
      {"momentum", "momentum_reference", Isa::Baseline, nullptr, prepareMomentum, runMomentum},
      {"adagrad", "adagrad_reference", Isa::Baseline, nullptr, prepareAdagrad, runAdagrad},
      {"adam", "adam_reference", Isa::Baseline, nullptr, prepareAdam, runAdam},
  };
  return kRows;
}

} // namespace dspark
