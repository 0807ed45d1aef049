// The signal family: shape functions, prepare and run of its operators.
#pragma once
#include "kernels/common/element.h"
#include "kernels/common/kernel.h"

namespace dspark {

InferStatus inferDft(InferContext &ctx);
InferStatus inferStft(InferContext &ctx);
InferStatus inferWindow(InferContext &ctx);
InferStatus inferMelWeightMatrix(InferContext &ctx);

void prepareDft(const KernelCall &call, KernelWork &work);
void runDft(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void prepareStft(const KernelCall &call, KernelWork &work);
void runStft(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void prepareWindow(const KernelCall &call, KernelWork &work);
void runHannWindow(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void runHammingWindow(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void runBlackmanWindow(const KernelCall &call, const KernelWork &work, const KernelPart &part);
void prepareMelWeightMatrix(const KernelCall &call, KernelWork &work);
void runMelWeightMatrix(const KernelCall &call, const KernelWork &work, const KernelPart &part);

/// The longest transform; keeps table sizes and k*k in range.
inline constexpr int64_t kMaxDftLength = int64_t(1) << 28;

/// The sole element of an i32 or i64 operand, or `otherwise` if it is absent.
inline int64_t scalarOperand(const KernelCall &call, size_t i, int64_t otherwise) {
  if (!call.has(i))
    return otherwise;
  return call.in[i].type == DType::I32 ? *call.in[i].as<const int32_t>() : *call.in[i].as<const int64_t>();
}

} // namespace dspark
