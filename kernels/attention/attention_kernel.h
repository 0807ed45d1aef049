// Prepare and run of the family's kernels, where there is one run per set of inner loops, and which calls
// they take.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

bool acceptsAttention(const KernelCall &call);
void prepareAttention(const KernelCall &call, KernelWork &work);
/// With larger tiles, for caches of machines with AVX-512.
void prepareAttentionWide(const KernelCall &call, KernelWork &work);
void runAttentionBaseline(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void runAttentionAvx2(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void runAttentionAvx512(const KernelCall &call, const KernelWork &work, const KernelPart &part);
/// In bf16 (`arithmetic`): where it pays, for 16 rows of queries and more.
bool acceptsAttentionBf16(const KernelCall &call);
void runAttentionBf16(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void prepareAttentionReference(const KernelCall &call, KernelWork &work);
void runAttentionReference(const KernelCall &call, const KernelWork &work, const KernelPart &part);

void preparePagedAttention(const KernelCall &call, KernelWork &work);
void runPagedAttentionBaseline(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void runPagedAttentionAvx2(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void runPagedAttentionAvx512(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void preparePagedReference(const KernelCall &call, KernelWork &work);
void runPagedReference(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void preparePagedCacheWrite(const KernelCall &call, KernelWork &work);
void runPagedCacheWrite(const KernelCall &call, const KernelWork &work, const KernelPart &part);

void prepareRotaryEmbedding(const KernelCall &call, KernelWork &work);
bool acceptsRotaryHalves(const KernelCall &call);
void runRotaryHalvesAvx2(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void runRotaryHalvesAvx512(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void runRotaryEmbedding(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void prepareLinearAttention(const KernelCall &call, KernelWork &work);
void runLinearAttention(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void prepareCausalConv(const KernelCall &call, KernelWork &work);
void runCausalConv(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void prepareSwiglu(const KernelCall &call, KernelWork &work);
void runSwiglu(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
