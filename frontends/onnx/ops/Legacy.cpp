#include "frontends/onnx/ops/Legacy.h"

namespace dspark::onnx {

/// `x` with axes of size 1 appended until its last dim stands at `position` of a tensor of rank `rank`.
static mlir::Value appendAxes(Node &n, mlir::Value x, int64_t xRank, int64_t position, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t axis = xRank; position + axis < rank; ++axis)
    axes.push_back(axis);
  return axes.empty() ? x : n.one("unsqueeze", {x, n.list(axes)});
}

mlir::Value alignLegacyOperand(Node &n) {
  mlir::Value b = n.in(1);
  if (!n.i("broadcast", 0) || !n.hasAttribute("axis"))
    return b;
  auto rankA = n.rank(n.in(0)), rankB = n.rank(b);
  if (!rankA || !rankB) {
    n.unsupported("broadcast along an axis needs operands of known rank");
    return b;
  }
  int64_t axis = n.i("axis", 0);
  if (axis < 0)
    axis += *rankA;
  if (axis < 0 || axis + *rankB > *rankA) {
    n.invalid("operand 1 of rank " + std::to_string(*rankB) + " does not fit operand 0 of rank " +
              std::to_string(*rankA) + " at axis " + std::to_string(n.i("axis", 0)));
    return b;
  }
  return appendAxes(n, b, *rankB, axis, *rankA);
}

void buildPRelu1(Node &n) {
  mlir::Value slope = n.in(1);
  auto rank = n.rank(n.in(0)), slopeRank = n.rank(slope);
  if (slopeRank == 1 && rank && *rank > 2 && !n.info(slope).dims[0].is(1))
    slope = appendAxes(n, slope, 1, 1, *rank);
  n.out(0, n.binary("prelu", n.in(0), slope));
}

} // namespace dspark::onnx
