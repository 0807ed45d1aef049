// The kernel rows of data movement, by file.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark::movement {

std::span<const Kernel> copyKernels();    // transpose, expand, tile, depth_to_space, space_to_depth
std::span<const Kernel> joinKernels();    // concat, split
std::span<const Kernel> sliceKernels();   // slice
std::span<const Kernel> padKernels();     // pad, center_crop_pad
std::span<const Kernel> viewKernels();    // reshape and the other views, shape, size
std::span<const Kernel> arrangeKernels(); // reverse_sequence, trilu

} // namespace dspark::movement
