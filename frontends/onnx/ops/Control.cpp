// If, Loop and Scan.
#include "frontends/onnx/ops/Control.h"

namespace dspark::onnx {
namespace {

constexpr OpRow rows[] = {
    built("If", 1, {1, 1, 1, kVariadic}, buildIf, "then_branch:g! else_branch:g!"),
    built("Loop", 1, {0, 254, 1, kVariadic}, buildLoop, "body:g!"),
    built("Scan", 8, {0, 254, 1, kVariadic}, buildScan8, "body:g! directions:I num_scan_inputs:i!"),
    built("Scan", 9, {1, kVariadic, 1, kVariadic}, buildScan,
          "body:g! num_scan_inputs:i! scan_input_axes:I scan_input_directions:I scan_output_axes:I "
          "scan_output_directions:I"),

    refused("ImageDecoder", 20, "decoding of image files is not supported"),
};

} // namespace

OpRows controlRows() { return rows; }

} // namespace dspark::onnx
