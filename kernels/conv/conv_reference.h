// Scalar kernels of the convolutions: float types other than f32, deformable, and the integer forms.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

bool acceptsRowMajorWeights(const KernelCall &call);
void prepareConvReference(const KernelCall &call, KernelWork &work);
void prepareConvTransposeReference(const KernelCall &call, KernelWork &work);
/// Both operators.
void runConvReference(const KernelCall &call, const KernelWork &work, const KernelPart &part);

void prepareDeformConv(const KernelCall &call, KernelWork &work);
void runDeformConv(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
