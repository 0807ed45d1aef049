// Rows of lstm, gru and rnn that compute in f32, one per ISA level, and the scalar ones for the other float
// types.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

bool acceptsRnnF32(const KernelCall &call);
template <int gates> void prepareRnnF32(const KernelCall &call, KernelWork &work);
/// All three operators.
template <Isa isa> void runRnnF32(const KernelCall &call, const KernelWork &work, const KernelPart &part);

bool acceptsRnnReference(const KernelCall &call);
template <int gates> void prepareRnnReference(const KernelCall &call, KernelWork &work);
void runRnnReference(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
