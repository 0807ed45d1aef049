// Rows of conv and conv_transpose that compute in f32, one per ISA level.
#pragma once
#include "kernels/common/kernel.h"

namespace dspark {

bool acceptsConvF32(const KernelCall &call);
void prepareConvF32(const KernelCall &call, KernelWork &work);
/// The product by AMX tiles (kernels/matmul/gemm_tiles.h), where an image has enough pixels and channels to
/// pay for the splitting and Winograd's transform does not multiply less. The choice is the shape of an
/// image's, so that an image gets the same bits in every batch.
bool acceptsConvTiles(const KernelCall &call);
void prepareConvTiles(const KernelCall &call, KernelWork &work);
void prepareConvTransposeF32(const KernelCall &call, KernelWork &work);
/// Both operators.
template <Isa isa> void runConvF32(const KernelCall &call, const KernelWork &work, const KernelPart &part);

/// Transposed, filters side by side, few output channels.
bool acceptsConvBlocks(const KernelCall &call);
void prepareConvBlocks(const KernelCall &call, KernelWork &work);
template <Isa isa> void runConvBlocks(const KernelCall &call, const KernelWork &work, const KernelPart &part);

/// 3x3 filters at stride 1 where Winograd's transform is cheaper; channels last, packed.
bool acceptsConvWinograd(const KernelCall &call);
void prepareConvWinograd(const KernelCall &call, KernelWork &work);
template <Isa isa>
void runConvWinograd(const KernelCall &call, const KernelWork &work, const KernelPart &part);

/// Filters along one axis at stride 1 where Winograd's transform is cheaper; channels last, packed.
bool acceptsConvLine(const KernelCall &call);
void prepareConvLine(const KernelCall &call, KernelWork &work);
template <Isa isa> void runConvLine(const KernelCall &call, const KernelWork &work, const KernelPart &part);

/// One input and one output channel per group.
bool acceptsDepthwise(const KernelCall &call);
void prepareDepthwise(const KernelCall &call, KernelWork &work);
template <Isa isa> void runDepthwise(const KernelCall &call, const KernelWork &work, const KernelPart &part);

/// A pointwise convolution and the depthwise one behind it: operands x, w1, b1?, w2, b2?; channels last,
/// packed.
bool acceptsExpandF32(const KernelCall &call);
void prepareExpandDepthwise(const KernelCall &call, KernelWork &work);
template <Isa isa>
void runExpandDepthwise(const KernelCall &call, const KernelWork &work, const KernelPart &part);

} // namespace dspark
