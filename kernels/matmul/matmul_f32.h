// Rows of matmul and matmul_dequant that compute in f32, one per ISA level.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

bool acceptsMatmulF32(const KernelCall &call);
void prepareMatmulF32(const KernelCall &call, KernelWork &work);
/// The product by AMX tiles (gemm_tiles.h), for packed weights of at least 2 MiB: with few rows they come
/// from memory, which is no faster than splitting them is, and with many rows tiles win. What a row gets must
/// not depend on how many rows there are, so the choice is the weight's alone.
bool acceptsMatmulTiles(const KernelCall &call);
void prepareMatmulTiles(const KernelCall &call, KernelWork &work);
void prepareMatmulDequant(const KernelCall &call, KernelWork &work);
/// Both operators.
template <Isa isa> void runMatmulF32(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
