// Kernels of pool and max_unpool.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

/// f32 maxima and averages, channels last.
bool acceptsPoolF32(const KernelCall &call);
void preparePoolF32(const KernelCall &call, KernelWork &work);
template <Isa isa> void runPoolF32(const KernelCall &call, const KernelWork &work, const KernelPart &part);

/// Maxima of bytes without indices, and qlinear_pool.
bool acceptsPoolBytes(const KernelCall &call);
void preparePoolBytes(const KernelCall &call, KernelWork &work);
void prepareQlinearPool(const KernelCall &call, KernelWork &work);
template <Isa isa> void runPoolBytes(const KernelCall &call, const KernelWork &work, const KernelPart &part);

/// Everything else, one output at a time.
void preparePoolReference(const KernelCall &call, KernelWork &work);
void runPoolReference(const KernelCall &call, const KernelWork &work, const KernelPart &part);

void prepareMaxUnpool(const KernelCall &call, KernelWork &work);
void runMaxUnpool(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
