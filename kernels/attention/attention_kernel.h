// Prepare and run of attention and flex_attention (attention.cpp), one run per set of inner loops.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

void prepareAttention(const KernelCall &call, KernelWork &work);
void runAttention(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void runAttentionAvx2(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void runAttentionAvx512(const KernelCall &call, const KernelWork &work, const KernelPart &part);

void prepareRotaryEmbedding(const KernelCall &call, KernelWork &work);
void runRotaryEmbedding(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void prepareLinearAttention(const KernelCall &call, KernelWork &work);
void runLinearAttention(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void prepareCausalConv(const KernelCall &call, KernelWork &work);
void runCausalConv(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void prepareSwiglu(const KernelCall &call, KernelWork &work);
void runSwiglu(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
