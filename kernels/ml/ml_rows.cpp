#include "kernels/common/families.h"
#include "kernels/ml/ml.h"

namespace dspark {

std::span<const Kernel> mlKernels() {
  static constexpr Kernel kRows[] = {
      {"det", "det_reference", Isa::Baseline, nullptr, prepareDet, runDet},
      {"inverse", "inverse_reference", Isa::Baseline, nullptr, prepareInverse, runInverse},
      {"binarizer", "binarizer_reference", Isa::Baseline, nullptr, prepareBinarizer, runBinarizer},
      {"label_encoder", "label_encoder_reference", Isa::Baseline, nullptr, prepareLabelEncoder,
       runLabelEncoder},
      {"tf_idf_vectorizer", "tf_idf_vectorizer_reference", Isa::Baseline, nullptr, prepareTfIdf, runTfIdf},
      {"tree_ensemble", "tree_ensemble_reference", Isa::Baseline, nullptr, prepareTreeEnsemble,
       runTreeEnsemble},
      {"pairwise_probability", "pairwise_probability_reference", Isa::Baseline, nullptr,
       preparePairwiseProbability, runPairwiseProbability},
  };
  return kRows;
}

} // namespace dspark
