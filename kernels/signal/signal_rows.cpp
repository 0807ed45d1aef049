#include "kernels/common/families.h"
#include "kernels/signal/signal.h"

namespace dspark {

std::span<const Kernel> signalKernels() {
  static constexpr Kernel kRows[] = {
      {"dft", "dft_reference", Isa::Baseline, nullptr, prepareDft, runDft},
      {"stft", "stft_reference", Isa::Baseline, nullptr, prepareStft, runStft},
      {"hann_window", "hann_window_reference", Isa::Baseline, nullptr, prepareWindow, runHannWindow},
      {"hamming_window", "hamming_window_reference", Isa::Baseline, nullptr, prepareWindow, runHammingWindow},
      {"blackman_window", "blackman_window_reference", Isa::Baseline, nullptr, prepareWindow,
       runBlackmanWindow},
      {"mel_weight_matrix", "mel_weight_matrix_reference", Isa::Baseline, nullptr, prepareMelWeightMatrix,
       runMelWeightMatrix},
  };
  return kRows;
}

} // namespace dspark
