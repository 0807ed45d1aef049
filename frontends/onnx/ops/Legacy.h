// Rewrites that several old operator forms share.
#pragma once
#include "frontends/onnx/Node.h"

namespace dspark::onnx {

/// Operand 1 of a binary node from before opset 7, unsqueezed so that numpy broadcasting does what
/// `broadcast` and `axis` ask for: B's dims stand at axis, axis + 1 ... of A.
mlir::Value alignLegacyOperand(Node &n);

/// PRelu before opset 7: a 1-D slope belongs to axis 1.
void buildPRelu1(Node &n);

/// `x` flattened to two dims at `axis`, put through `body`, and reshaped back: how Softmax and its kin worked
/// before opset 13.
template <typename Body> mlir::Value onFlattened(Node &n, mlir::Value x, int64_t axis, Body body) {
  mlir::Value flat = n.one("flatten", {x}, {n.attr("axis", axis)});
  return n.reshapeLike(body(flat), x);
}

} // namespace dspark::onnx
