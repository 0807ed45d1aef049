// The kernel rows of softmax and normalisations, by file.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark::norm_ops {

std::span<const Kernel> softmaxRows();     // softmax, log_softmax, hardmax
std::span<const Kernel> layerNormRows();   // layer_norm
std::span<const Kernel> channelNormRows(); // batch_norm, instance_norm, group_norm
std::span<const Kernel> otherNormRows();   // lrn, lp_norm, mean_variance_norm

/// One number type's row of a kernel as f32: f32 rows are used in place, 16-bit ones are converted.
inline bool isHalf(DType type) { return type == DType::F16 || type == DType::BF16; }

} // namespace dspark::norm_ops
