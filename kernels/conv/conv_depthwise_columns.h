// The tiles of conv_depthwise_integer.cpp whose rows go by columns of the input (QDepthwiseColumns): square
// kernels of usual networks at the level with the instruction for four bytes.
#pragma once
#include "kernels/conv/conv_plan.h"
#include "kernels/conv/qdepthwise.h"
#include "kernels/matmul/integer_result.h"

namespace dspark {

class DepthwiseColumns {
public:
  /// Whether it is for this shape; weights with zero points are not for it.
  static bool suits(const ConvPlan &conv);
  /// Bytes of scratch.
  static int64_t scratchBytes(const ConvPlan &conv);

  /// A tile's, in scratch at 64 bytes.
  DepthwiseColumns(const KernelCall &call, const ConvPlan &conv, const QDepthwiseOps &ops,
                   std::byte *scratch);
  /// Whether the scales are for it too; if not, nothing may be run.
  bool fits() const { return isWhole; }
  /// Row `index` of all output rows.
  void runRow(int64_t index) const;

private:
  // `channels` of a block from its `channel` on; the last one begins earlier where it would not be full.
  struct Block {
    int64_t channel, channels;
  };
  Block blockAt(int64_t channel) const;
  void startBlock(const Block &block, int64_t at);
  void runBlock(const Block &block, int64_t at, int64_t index) const;
  template <typename F> void eachBlock(F f) const {
    int64_t at = 0;
    for (int64_t channel = 0; channel < conv.outChannels;) {
      Block block = blockAt(channel);
      f(block, at);
      channel = block.channel + block.channels;
      at += kColumnChannels;
    }
  }

  const KernelCall &call;
  const ConvPlan &conv;
  const QDepthwiseOps &ops;
  bool isSigned, isWhole = true;
  IntegerResult result;
  // Of blocks one after another, kColumnChannels each.
  std::byte *weights, *padding;
  int32_t *start;
  float *scale, *offset;
  ResultColumns *columns;
};

} // namespace dspark
