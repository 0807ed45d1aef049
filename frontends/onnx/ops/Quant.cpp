// Quantisation, and products of integers.
#include "frontends/onnx/Node.h"

namespace dspark::onnx {
namespace {

constexpr std::string_view kWindow = "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I";

constexpr OpRow rows[] = {
    direct("QuantizeLinear", 10, {2, 3}, "quantize_linear",
           "axis:i block_size:i output_dtype:i precision:i saturate:i"),
    direct("DequantizeLinear", 10, {2, 3}, "dequantize_linear", "axis:i block_size:i output_dtype:i"),
    direct("DynamicQuantizeLinear", 11, {1, 1, 3, 3}, "dynamic_quantize_linear"),
    direct("MatMulInteger", 10, {2, 4}, "matmul_integer"),
    direct("QLinearMatMul", 10, {8, 8}, "qlinear_matmul"),
    direct("ConvInteger", 10, {2, 4}, "conv_integer", kWindow),
    direct("QLinearConv", 10, {8, 9}, "qlinear_conv", kWindow),
};

} // namespace

OpRows quantRows() { return rows; }

} // namespace dspark::onnx
