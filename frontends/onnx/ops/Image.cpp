// Resampling, regions of interest, and signal transforms.
#include "frontends/onnx/Node.h"

namespace dspark::onnx {
namespace {

/// Upsample, and Resize of opset 10: output coordinate x reads input x / scale; nearest rounds down.
void resizeAsymmetric(Node &n, mlir::Value scales) {
  std::string mode = n.s("mode", "nearest");
  if (mode == "bilinear" || mode == "trilinear") // names of opset 1
    mode = "linear";
  n.out(0, n.one("resize", {n.in(0), mlir::Value(), scales},
                 {n.attr("mode", mode), n.attr("coordinate_transformation_mode", "asymmetric"),
                  n.attr("nearest_mode", "floor")}));
}
void buildUpsample1(Node &n) {
  resizeAsymmetric(n, n.floatList({1, 1, n.f("height_scale", 1), n.f("width_scale", 1)}));
}
void buildUpsample7(Node &n) { resizeAsymmetric(n, n.floatList(n.floats("scales"))); }
void buildUpsample9(Node &n) { resizeAsymmetric(n, n.in(1)); }

/// Before opset 16 coordinates were not shifted by half a pixel.
void buildRoiAlign10(Node &n) {
  Attributes attributes = n.pick("mode output_height output_width sampling_ratio spatial_scale");
  attributes.push_back(n.attr("coordinate_transformation_mode", "output_half_pixel"));
  n.out(0, n.one("roi_align", n.inputs(), attributes));
}

/// Before opset 20 the modes were called bilinear and bicubic.
void buildGridSample16(Node &n) {
  std::string mode = n.s("mode", "bilinear");
  Attributes attributes = n.pick("align_corners padding_mode");
  attributes.push_back(n.attr("mode", mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode));
  n.out(0, n.one("grid_sample", n.inputs(), attributes));
}

/// Before opset 20 the axis was an attribute, 1 if absent.
void buildDft17(Node &n) {
  mlir::Value axis = n.scalar(DType::I64, double(n.i("axis", 1)));
  n.out(0, n.one("dft", {n.in(0), n.in(1), axis}, n.pick("inverse onesided")));
}

constexpr std::string_view kResize =
    "antialias:i axes:I coordinate_transformation_mode:s cubic_coeff_a:f "
    "exclude_outside:i extrapolation_value:f keep_aspect_ratio_policy:s mode:s "
    "nearest_mode:s";
/// Until opset 12 operands 1 and 2 could not be left out; files give empty tensors instead, and later ones
/// still do.
void buildResize(Node &n) {
  Values operands = n.inputs();
  for (size_t i = 1; i < operands.size(); ++i)
    if (n.rank(operands[i]) == 1 && n.info(operands[i]).dims[0].is(0))
      operands[i] = {};
  n.out(0, n.one("resize", operands, n.pick(kResize)));
}

constexpr OpRow rows[] = {
    built("Upsample", 1, {}, buildUpsample1, "height_scale:f! mode:s width_scale:f!"),
    built("Upsample", 7, {}, buildUpsample7, "mode:s scales:F!"),
    built("Upsample", 9, {2, 2}, buildUpsample9, "mode:s"),
    built("Resize", 10, {2, 2}, buildUpsample9, "mode:s"),
    built("Resize", 11, {1, 4}, buildResize, kResize),
    built("GridSample", 16, {2, 2}, buildGridSample16, "align_corners:i mode:s padding_mode:s"),
    direct("GridSample", 20, {2, 2}, "grid_sample", "align_corners:i mode:s padding_mode:s"),
    direct("AffineGrid", 20, {2, 2}, "affine_grid", "align_corners:i"),
    built("RoiAlign", 10, {3, 3}, buildRoiAlign10,
          "mode:s output_height:i output_width:i sampling_ratio:i spatial_scale:f"),
    direct("RoiAlign", 16, {3, 3}, "roi_align",
           "coordinate_transformation_mode:s mode:s output_height:i output_width:i sampling_ratio:i "
           "spatial_scale:f"),

    built("DFT", 17, {1, 2}, buildDft17, "axis:i inverse:i onesided:i"),
    direct("DFT", 20, {1, 3}, "dft", "inverse:i onesided:i"),
    direct("STFT", 17, {2, 4}, "stft", "onesided:i"),
    direct("HannWindow", 17, {}, "hann_window", "output_datatype:i periodic:i"),
    direct("HammingWindow", 17, {}, "hamming_window", "output_datatype:i periodic:i"),
    direct("BlackmanWindow", 17, {}, "blackman_window", "output_datatype:i periodic:i"),
    direct("MelWeightMatrix", 17, {5, 5}, "mel_weight_matrix", "output_datatype:i"),
};

} // namespace

OpRows imageRows() { return rows; }

} // namespace dspark::onnx
