// com.microsoft's product with weights of few bits.
#pragma once
#include "frontends/onnx/Node.h"

namespace dspark::onnx {

/// A, B, scales, zero_points?, g_idx?, bias?: matmul with packed weights, made when the plan is written.
void buildMatMulNBits(Node &n);

} // namespace dspark::onnx
