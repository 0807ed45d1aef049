#include "kernels/common/families.h"
#include "kernels/image/image.h"

namespace dspark {

std::span<const Kernel> imageKernels() {
  static constexpr Kernel kRows[] = {
      {"resize", "resize_reference", Isa::Baseline, nullptr, prepareResize, runResize},
      {"grid_sample", "grid_sample_reference", Isa::Baseline, nullptr, prepareGridSample, runGridSample},
      {"affine_grid", "affine_grid_reference", Isa::Baseline, nullptr, prepareAffineGrid, runAffineGrid},
      {"roi_align", "roi_align_reference", Isa::Baseline, nullptr, prepareRoiAlign, runRoiAlign},
      {"non_max_suppression", "non_max_suppression_reference", Isa::Baseline, nullptr,
       prepareNonMaxSuppression, runNonMaxSuppression},
      {"col2im", "col2im_reference", Isa::Baseline, nullptr, prepareCol2Im, runCol2Im},
  };
  return kRows;
}

} // namespace dspark
