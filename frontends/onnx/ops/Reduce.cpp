// Reductions along axes, arg-reductions, running sums.
#include "frontends/onnx/Node.h"

namespace dspark::onnx {
namespace {

/// Axes as an attribute (until opset 17; ReduceSum until 12) and as an operand.
constexpr OpRow byAttribute(std::string_view op, std::string_view kind) {
  return direct(op, 1, {}, "reduce", "axes:I keepdims:i", kind);
}
constexpr OpRow byOperand(std::string_view op, int since, std::string_view kind) {
  return direct(op, since, {1, 2}, "reduce", "keepdims:i noop_with_empty_axes:i", kind);
}

constexpr OpRow rows[] = {
    byAttribute("ReduceL1", "l1"),
    byOperand("ReduceL1", 18, "l1"),
    byAttribute("ReduceL2", "l2"),
    byOperand("ReduceL2", 18, "l2"),
    byAttribute("ReduceLogSum", "log_sum"),
    byOperand("ReduceLogSum", 18, "log_sum"),
    byAttribute("ReduceLogSumExp", "log_sum_exp"),
    byOperand("ReduceLogSumExp", 18, "log_sum_exp"),
    byAttribute("ReduceMax", "max"),
    byOperand("ReduceMax", 18, "max"),
    byAttribute("ReduceMean", "mean"),
    byOperand("ReduceMean", 18, "mean"),
    byAttribute("ReduceMin", "min"),
    byOperand("ReduceMin", 18, "min"),
    byAttribute("ReduceProd", "prod"),
    byOperand("ReduceProd", 18, "prod"),
    byAttribute("ReduceSum", "sum"),
    byOperand("ReduceSum", 13, "sum"),
    byAttribute("ReduceSumSquare", "sum_square"),
    byOperand("ReduceSumSquare", 18, "sum_square"),

    direct("ArgMax", 1, {}, "arg_reduce", "axis:i keepdims:i select_last_index:i", "argmax"),
    direct("ArgMin", 1, {}, "arg_reduce", "axis:i keepdims:i select_last_index:i", "argmin"),
    direct("CumSum", 11, {2, 2}, "cumulative", "exclusive:i reverse:i", "sum"),
    direct("CumProd", 26, {2, 2}, "cumulative", "exclusive:i reverse:i", "prod"),
};

} // namespace

OpRows reduceRows() { return rows; }

} // namespace dspark::onnx
