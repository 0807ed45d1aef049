// com.microsoft's crops of images.
#pragma once
#include "frontends/onnx/Node.h"

namespace dspark::onnx {

/// X [N, C, H, W], boxes [B, 4] (y1, x1, y2, x2 as parts of an image), the image of each box [B], crop size [2].
void buildCropAndResize(Node &n);

} // namespace dspark::onnx
