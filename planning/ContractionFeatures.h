// Features of products and convolutions, for CostFeatures.cpp.
#pragma once
#include "planning/CostFeatures.h"

namespace dspark {

/// `f.key` and `f.parts` are set.
void matmulFeatures(CostFeatures &f, const KernelCall &call);
void convFeatures(CostFeatures &f, const KernelCall &call, const KernelWork &work);

} // namespace dspark
