// Where each output index of one axis of resize takes its value from: a list of (input index, weight). Resize
// is separable, so one table per axis describes it, whatever the mode.
#pragma once
#include "kernels/image/image.h"

namespace dspark {

struct ResizeTap {
  int64_t index;
  double weight;
};

/// One axis. Taps of output index i are taps[starts[i]] .. taps[starts[i+1]]; none means extrapolation_value.
struct ResizeAxis {
  int64_t in, out;
  double scale;  // out / in, or as given
  double width;  // scale * in: the output size before it was rounded
  double roi[2]; // CropAndResize: start and end, in units of in - 1
  int64_t *starts;
  ResizeTap *taps;
  int64_t capacity; // taps that fit
  bool isIdentity;  // set by buildResizeAxis
};

/// Upper bound of the taps of one output index: the stretched filter when antialiasing, at most the whole
/// axis.
int64_t maxResizeTaps(const ResizeAttrs &attrs, bool antialias, int64_t in, int64_t out);

struct ResizeFilter {
  ResizeAttrs attrs;
  bool antialias, excludeOutside;
  double cubicA;
};
void buildResizeAxis(const ResizeFilter &filter, ResizeAxis &axis);

} // namespace dspark
