// Rows of conv with weights in bf16 (`packed` bf16), which round what they read to bf16 as well, and of
// expand_depthwise with such (`expand_packed`).
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

bool acceptsConvBf16(const KernelCall &call);
/// Where vdpbf16ps pays (kernels/common/bf16_speed.h).
bool acceptsConvBf16Dots(const KernelCall &call);
void prepareConvBf16(const KernelCall &call, KernelWork &work);
void prepareConvBf16Tiles(const KernelCall &call, KernelWork &work);
/// By AMX tiles (kernels/matmul/gemm_bf16_tiles.h) or, at the levels below, by multiply-adds of f32: for
/// plans of machines that multiply bf16.
template <Isa isa> void runConvBf16(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void runConvBf16Dots(const KernelCall &call, const KernelWork &work, const KernelPart &part);

bool acceptsExpandBf16(const KernelCall &call);
bool acceptsExpandBf16Dots(const KernelCall &call);
void prepareExpandTiles(const KernelCall &call, KernelWork &work);
template <Isa isa> void runExpandBf16(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void runExpandBf16Dots(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
