// Which input rows an output row of a convolution reads: per axis a list of taps, and from these the
// addresses that the product of kernels/matmul/gemm.h takes.
//
// A transposed convolution is handled class by class: outputs whose coordinates are equal modulo the strides
// use the same taps, and walk the input in steps of one. A plain one has a single class, and walks in steps
// of the stride.
#pragma once
#include "kernels/conv/conv_plan.h"

namespace dspark {

/// One axis of one class. Output i of `outputs` lies at outStart + i * outStep and reads, by tap j, the input
/// element i * inStep + offset[j].
struct ConvAxis {
  int64_t outputs, outStart, outStep, inStep;
  int64_t taps;
  int64_t *tap, *offset; // [taps]

  /// `residue` is the class; lists must have room for the axis' kernel.
  void read(const ConvPlan &conv, int axis, int64_t residue, int64_t *tapList, int64_t *offsetList);
};

/// How taps are grouped into rows of the product. With few channels the elements that the innermost axis'
/// taps read are one run of memory, so they make one long row; where padding cuts it, a copy is made.
struct ConvRows {
  bool joinsTaps;
  int64_t depth;   // elements of a row
  int64_t maxTaps; // rows per output
  int64_t maxRows; // outputs per tile

  void plan(const ConvPlan &conv);
};

/// Outputs [first, first + count) of one class and group.
struct ConvGather {
  const ConvPlan *conv;
  ConvAxis axis[3];
  const float *x;     // channels last, at the group's first channel
  const float *zeros; // [depth]
  float *edges;       // room for count * maxTaps rows; only when taps are joined

  int64_t outputsOfClass() const { return conv->batch * axis[0].outputs * axis[1].outputs * axis[2].outputs; }
  /// Addresses of rows [tap][count], floats from a panel's begin to each tap's weights, and the number of
  /// each output's pixel.
  int64_t gather(const ConvRows &rows, int64_t first, int64_t count, const float **a, int64_t *tapOffset,
                 int64_t *pixel);

private:
  struct Run; // outputs that follow each other along the innermost axis
  void separateTaps(const Run &run, int64_t count, const float **a) const;
  void joinedTaps(const ConvRows &rows, const Run &run, int64_t count, const float **a);
};

} // namespace dspark
