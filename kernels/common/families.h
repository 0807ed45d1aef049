// Declares xOps() and xKernels() of every family in families.def.
#pragma once
#include "kernels/common/catalogue.h"
#include "kernels/common/kernel.h"

namespace dspark {
#define DSPARK_FAMILY(name)                                                                                  \
  std::span<const OpEntry> name##Ops();                                                                      \
  std::span<const Kernel> name##Kernels();
#include "kernels/families.def"
#undef DSPARK_FAMILY
} // namespace dspark
