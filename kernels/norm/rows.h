// The kernel rows of softmax and normalisations, by file.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark::norm_ops {

std::span<const Kernel> softmaxRows();     // softmax, log_softmax, hardmax
std::span<const Kernel> layerNormRows();   // layer_norm
std::span<const Kernel> channelNormRows(); // batch_norm, instance_norm, group_norm
std::span<const Kernel> otherNormRows();   // lrn, lp_norm, mean_variance_norm

} // namespace dspark::norm_ops
