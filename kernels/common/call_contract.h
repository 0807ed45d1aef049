// The contract of kernel.h as a check: builds with our assertions make it before every call of a row.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

#ifdef NDEBUG
inline void expectCall(const Kernel &, const KernelCall &, const KernelWork &, const KernelPart &) {}
#else
/// Aborts where the row cannot take the call, or an operand, the part or the scratch is not as kernel.h has
/// it.
void expectCall(const Kernel &row, const KernelCall &call, const KernelWork &work, const KernelPart &part);
#endif

} // namespace dspark
