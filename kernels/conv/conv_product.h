// A convolution as a product (kernels/matmul/gemm.h): output pixels are rows, (tap, input channel) is the
// sum, output channels are columns. Nothing is copied: the product reads the input where it lies, by one
// address per pixel and tap. What conv_f32.cpp and conv_bf16.cpp share.
#pragma once
#include "kernels/conv/conv_taps.h"
#include "kernels/matmul/gemm.h"
#include "kernels/matmul/matmul_plan.h"

namespace dspark {

/// Sizes and scratch of one shape's product. Its elements of x and w are 4 bytes each: f32, or pairs of bf16
/// as if they were one channel, in which case `conv` counts pairs.
struct ConvProduct {
  ConvPlan conv;
  ConvRows rows;
  Epilogue epilogue;
  int64_t classes[3]; // per axis; 1 unless transposed
  TileGrid grid;      // per class and group

  /// Works out the rest from `conv`; the number of tiles, and in `work` the scratch of a thread. `hasTiles`:
  /// with room for the parts that AMX takes.
  uint32_t plan(const KernelCall &call, bool hasTiles, KernelWork &work);

  struct Operands {
    const float *x, *w;           // channels last; in panels
    const float *bias, *residual; // or null
    float *y;
  };
  /// Multiplies the part's tiles by `multiply`.
  void run(void (*multiply)(const GemmTile &), const Operands &operands, const KernelPart &part) const;

private:
  struct Share;
  Share shareOf(uint32_t tile) const;
  void runTile(void (*multiply)(const GemmTile &), const Operands &operands, std::byte *scratch,
               uint32_t index, int64_t sideBySide) const;

  // Offsets into a thread's scratch, in bytes.
  int64_t table, tapOffset, axisLists, pixels, zeros, edges, copy, parts;
};

} // namespace dspark
