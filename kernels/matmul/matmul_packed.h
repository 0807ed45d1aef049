// Rows of the `matmul` operator whose B is packed in few bits (packed_format.h).
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

bool acceptsMatmulPacked(const KernelCall &call);
void prepareMatmulPacked(const KernelCall &call, KernelWork &work);
/// Weights and rows in bf16, the latter rounded where they are f32 (`arithmetic` bf16), on machines with fast
/// instructions for them.
bool acceptsMatmulDots(const KernelCall &call);
void prepareMatmulDots(const KernelCall &call, KernelWork &work);
/// For level Amx: rows are split where the weights are bf16 (packed_tiles.h).
void prepareMatmulPackedTiles(const KernelCall &call, KernelWork &work);
template <Isa isa>
void runMatmulPacked(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
