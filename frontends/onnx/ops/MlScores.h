// What the predictors of ai.onnx.ml (linear, support vector, trees) have in common: transformed scores and
// the labels that go with them.
#pragma once
#include "frontends/onnx/Node.h"

namespace dspark::onnx {

/// Attribute post_transform of the node applied to scores [N, E]; null, with the node refused, if it is none
/// of NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO and PROBIT.
mlir::Value postTransform(Node &n, mlir::Value scores);

/// Attributes `ints` or `strings` as an operand [C]; null, with the node refused, if there are none.
mlir::Value classLabels(Node &n, const std::string &ints, const std::string &strings);

/// labels[places]: places [N] of i64.
mlir::Value labelAt(Node &n, mlir::Value labels, mlir::Value places);

/// The place of the first largest value of each row.
mlir::Value largest(Node &n, mlir::Value scores);

/// `values` as an f32 constant of [rows, values / rows].
mlir::Value matrix(Node &n, const std::vector<double> &values, int64_t rows);

} // namespace dspark::onnx
