// com.microsoft.CropAndResize: boxes of images, each resized to one size. A row of the result is a mixture of
// two rows of the image, and a column of two columns, so a crop is A @ image @ B' with two weights in each
// row of A and B.
#include "frontends/onnx/ops/CropAndResize.h"

namespace dspark::onnx {
namespace {

struct Axis {
  mlir::Value weights;  // [boxes, size of the crop, size of the image]
  mlir::Value isInside; // [boxes, size of the crop]
};

/// Element `at` of a list of numbers, as a scalar.
mlir::Value element(Node &n, mlir::Value list, int64_t at) {
  return n.one("gather", {list, n.intScalar(at)});
}

/// [boxes, 1]
mlir::Value corner(Node &n, int64_t at) {
  return n.one("slice", {n.in(1), n.list({at}), n.list({at + 1}), n.list({1})});
}

/// Corners are in units of the image's last row (column); one row alone lies in the middle of its box.
Axis along(Node &n, int64_t axis, bool isNearest) {
  mlir::Value begin = corner(n, axis), end = corner(n, axis + 2);
  auto number = [&](double value) { return n.scalar(DType::F32, value); };
  mlir::Value size = element(n, n.one("shape", {n.in(0)}), axis + 2);
  mlir::Value last = n.cast(n.binary("sub", size, n.intScalar(1)), DType::F32);
  mlir::Value count = n.cast(element(n, n.in(3), axis), DType::I64);
  mlir::Value steps = n.cast(n.one("range", {n.intScalar(0), count, n.intScalar(1)}), DType::F32);
  mlir::Value gaps =
      n.cast(n.binary("max", n.binary("sub", count, n.intScalar(1)), n.intScalar(1)), DType::F32);
  mlir::Value step = n.binary("div", n.binary("mul", n.binary("sub", end, begin), last), gaps);
  mlir::Value middle = n.binary("mul", n.binary("mul", n.binary("add", begin, end), last), number(0.5));
  mlir::Value isMany = n.compare("gt", count, n.intScalar(1));
  mlir::Value first = n.one("select", {isMany, n.binary("mul", begin, last), middle});
  mlir::Value at = n.binary("add", first, n.binary("mul", steps, step));
  mlir::Value isInside = n.binary("and", n.compare("ge", at, number(0)), n.compare("le", at, last));
  if (isNearest)
    at = n.unary("floor", n.binary("add", at, number(0.5)));
  mlir::Value rows = n.cast(n.one("range", {n.intScalar(0), size, n.intScalar(1)}), DType::F32);
  mlir::Value distance = n.unary("abs", n.binary("sub", n.one("unsqueeze", {at, n.list({2})}), rows));
  return {n.unary("relu", n.binary("sub", number(1), distance)), isInside};
}

} // namespace

void buildCropAndResize(Node &n) {
  std::string mode = n.s("mode", "bilinear");
  if (mode != "bilinear" && mode != "nearest")
    return n.invalid("mode is '" + mode + "'; expected bilinear or nearest");
  if (n.type(n.in(0)) != DType::F32)
    return n.unsupported("CropAndResize of other types than f32 is not supported");
  Axis y = along(n, 0, mode == "nearest"), x = along(n, 1, mode == "nearest");
  mlir::Value images = n.one("gather", {n.in(0), n.in(2)}); // [boxes, C, H, W]
  mlir::Value rows = n.one("matmul", {n.one("unsqueeze", {y.weights, n.list({1})}), images});
  mlir::Value crops =
      n.one("matmul", {rows, n.one("unsqueeze", {x.weights, n.list({1})})}, {n.attr("trans_b", int64_t(1))});
  mlir::Value isInside = n.binary("and", n.one("unsqueeze", {y.isInside, n.list({1, 3})}),
                                  n.one("unsqueeze", {x.isInside, n.list({1, 2})}));
  n.out(0, n.one("select", {isInside, crops, n.scalar(DType::F32, n.f("extrapolation_value", 0))}));
}

} // namespace dspark::onnx
