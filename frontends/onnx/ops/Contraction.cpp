// Matrix products, convolutions, pooling.
#include "frontends/onnx/Node.h"
#include <cmath>

namespace dspark::onnx {
namespace {

constexpr std::string_view kWindow = "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I";

/// alpha * op(A) @ op(B) + beta * C. The matmul takes a bias of shape [N] itself; any other C is added.
void buildGemm(Node &n) {
  double alpha = n.f("alpha", 1), beta = n.f("beta", 1);
  mlir::Value c = n.in(2);
  if (c && beta != 1)
    c = n.binary("mul", c, n.scalarLike(c, beta));
  Attributes attributes = n.pick("transA>trans_a transB>trans_b");
  bool isRow = c && n.rank(c) == 1 && n.info(c).dims[0].isConst() && !n.info(c).dims[0].is(1);
  if (isRow && alpha == 1 && beta != 0)
    return n.out(0, n.one("matmul", {n.in(0), n.in(1), c}, attributes));
  mlir::Value product = n.one("matmul", {n.in(0), n.in(1)}, attributes);
  if (alpha != 1)
    product = n.binary("mul", product, n.scalarLike(product, alpha));
  n.out(0, c && beta != 0 ? n.binary("add", product, c) : product);
}

/// Pooling over all spatial axes.
void globalPool(Node &n, std::string_view kind) {
  auto rank = n.rank(n.in(0));
  if (!rank)
    return n.unsupported("pooling over all spatial axes needs an input of known rank");
  std::vector<int64_t> axes;
  for (int64_t axis = 2; axis < *rank; ++axis)
    axes.push_back(axis);
  n.out(0, axes.empty() ? n.one("identity", {n.in(0)}) : n.reduce(kind, n.in(0), axes));
}
void buildGlobalAverage(Node &n) { globalPool(n, "mean"); }
void buildGlobalMax(Node &n) { globalPool(n, "max"); }
void buildGlobalLp(Node &n) {
  double p = n.hasAttribute("p") && n.attribute("p")->type() == ::onnx::AttributeProto::FLOAT
                 ? n.f("p", 2)
                 : double(n.i("p", 2));
  if (p == 1 || p == 2)
    return globalPool(n, p == 1 ? "l1" : "l2");
  n.unsupported("GlobalLpPool with p = " + std::to_string(p) + " is not supported; 1 and 2 are");
}

void buildLpPool1(Node &n) {
  double p = n.f("p", 2);
  if (!(p >= 1 && p < 1e6 && p == std::floor(p)))
    return n.unsupported("LpPool with p = " + std::to_string(p) +
                         " is not supported; whole numbers from 1 on are");
  Attributes attributes = n.pick("auto_pad kernel_shape pads strides");
  attributes.push_back(n.attr("kind", "lp"));
  attributes.push_back(n.attr("p", int64_t(p)));
  n.out(0, n.one("pool", {n.in(0)}, attributes));
}

constexpr OpRow rows[] = {
    direct("MatMul", 1, {2, 2}, "matmul"),
    built("Gemm", 1, {2, 3}, buildGemm, "alpha:f beta:f broadcast:i transA:i transB:i"),
    built("Gemm", 7, {2, 3}, buildGemm, "alpha:f beta:f transA:i transB:i"),
    direct("Einsum", 12, {1, kVariadic}, "einsum", "equation:s!"),
    direct("Det", 11, {}, "det"),
    direct("Conv", 1, {2, 3}, "conv", kWindow),
    direct("ConvTranspose", 1, {2, 3}, "conv_transpose",
           "auto_pad:s dilations:I group:i kernel_shape:I output_padding:I output_shape:I pads:I strides:I"),
    direct("DeformConv", 19, {3, 5}, "deform_conv",
           "dilations:I group:i kernel_shape:I offset_group:i pads:I strides:I"),
    direct("Col2Im", 18, {3, 3}, "col2im", "dilations:I pads:I strides:I"),

    direct("MaxPool", 1, {1, 1, 1, 2}, "pool",
           "auto_pad:s ceil_mode:i dilations:I kernel_shape:I! pads:I storage_order:i strides:I", "max"),
    direct("AveragePool", 1, {}, "pool",
           "auto_pad:s ceil_mode:i count_include_pad:i dilations:I kernel_shape:I! pads:I strides:I",
           "average"),
    built("LpPool", 1, {}, buildLpPool1, "auto_pad:s kernel_shape:I! p:f pads:I strides:I"),
    direct("LpPool", 2, {}, "pool", "auto_pad:s ceil_mode:i dilations:I kernel_shape:I! p:i pads:I strides:I",
           "lp"),
    direct("MaxUnpool", 9, {2, 3}, "max_unpool", "kernel_shape:I! pads:I strides:I"),
    direct("MaxRoiPool", 1, {2, 2}, "max_roi_pool", "pooled_shape:I! spatial_scale:f"),
    built("GlobalAveragePool", 1, {}, buildGlobalAverage),
    built("GlobalMaxPool", 1, {}, buildGlobalMax),
    built("GlobalLpPool", 1, {}, buildGlobalLp, "p:f"),
    built("GlobalLpPool", 2, {}, buildGlobalLp, "p:i"),
};

} // namespace

OpRows contractionRows() { return rows; }

} // namespace dspark::onnx
