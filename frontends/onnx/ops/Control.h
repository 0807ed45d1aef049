// What the control-flow rows share.
#pragma once
#include "frontends/onnx/GraphImporter.h"

namespace dspark::onnx {

/// What two possible values have in common; dims that differ are unknown, contents are forgotten.
TensorInfo join(const TensorInfo &a, const TensorInfo &b);
mlir::Type typeOf(Node &n, const TensorInfo &info);
/// Unknown dims are named, so that later uses can be compared.
void setInfo(Node &n, mlir::Value value, TensorInfo info);

void buildIf(Node &n);
void buildLoop(Node &n);
void buildScan(Node &n);
void buildScan8(Node &n);

} // namespace dspark::onnx
