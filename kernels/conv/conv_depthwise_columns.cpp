#include "kernels/conv/conv_depthwise_columns.h"
#include "kernels/common/shares.h"
#include <algorithm>
#include <cstring>

namespace dspark {
namespace {

// Places of blocks: whole ones, and two for the rest.
int64_t mostChannels(const ConvPlan &conv) {
  return (conv.outChannels / kColumnChannels + 2) * kColumnChannels;
}
int64_t weightBytes(const ConvPlan &conv) { return conv.kernel[2] * ceilOf(conv.kernel[2], 4) * 4; }

} // namespace

bool DepthwiseColumns::suits(const ConvPlan &conv) {
  return conv.kernel[0] == 1 && conv.kernel[1] == conv.kernel[2] &&
         (conv.kernel[2] == 3 || conv.kernel[2] == 5) && (conv.stride[2] == 1 || conv.stride[2] == 2) &&
         conv.dilation[2] == 1 && conv.pad[0] == 0 && conv.outChannels >= 16;
}

int64_t DepthwiseColumns::scratchBytes(const ConvPlan &conv) {
  return mostChannels(conv) * (weightBytes(conv) + 3 * 4 + 1) +
         mostChannels(conv) / kIntegerColumns * int64_t(sizeof(ResultColumns));
}

DepthwiseColumns::DepthwiseColumns(const KernelCall &call, const ConvPlan &conv, const QDepthwiseOps &ops,
                                   std::byte *scratch)
    : call(call), conv(conv), ops(ops), isSigned(call.in[0].type == DType::I8),
      result(call, kQlinearOperands) {
  int64_t channels = mostChannels(conv);
  columns = reinterpret_cast<ResultColumns *>(scratch);
  weights = scratch + channels / kIntegerColumns * int64_t(sizeof(ResultColumns));
  start = reinterpret_cast<int32_t *>(weights + channels * weightBytes(conv));
  scale = reinterpret_cast<float *>(start + channels);
  offset = scale + channels;
  padding = reinterpret_cast<std::byte *>(offset + channels);
  std::memset(padding, zeroAt(call.in[2], 0), size_t(channels));
  eachBlock([&](const Block &block, int64_t at) { startBlock(block, at); });
}

DepthwiseColumns::Block DepthwiseColumns::blockAt(int64_t channel) const {
  int64_t left = conv.outChannels - channel, width = left > 32 && conv.outChannels >= 64   ? 64
                                                     : left > 16 && conv.outChannels >= 32 ? 32
                                                                                           : 16;
  return {std::min(channel, conv.outChannels - width), width};
}

void DepthwiseColumns::startBlock(const Block &block, int64_t at) {
  uint8_t zero = uint8_t(zeroAt(call.in[2], 0) + (isSigned ? 128 : 0));
  ops.weights({call.in[3].as<int8_t>() + block.channel, conv.outChannels, conv.kernel[2], block.channels,
               zero, weights + at * weightBytes(conv), start + at});
  for (int64_t j = 0; j < block.channels; j += kIntegerColumns) {
    ResultColumns &some = *new (columns + (at + j) / kIntegerColumns) ResultColumns;
    result.read(block.channel + j, kIntegerColumns, some);
    isWhole &= staysWhole(some.scale, some.offset);
    for (int64_t part = 0; part < kColumnChannels; part += block.channels)
      for (int64_t lane = 0; lane < kIntegerColumns; lane += 4) { // which stay beside each other
        int64_t place = at + depthwisePlace(part + j + lane);
        for (int64_t i = 0; i < 4; ++i)
          start[place + i] = int32_t(uint32_t(start[place + i]) + uint32_t(some.bias[lane + i]));
        std::copy_n(some.scale + lane, 4, scale + place);
        std::copy_n(some.offset + lane, 4, offset + place);
      }
    std::fill_n(some.bias, kIntegerColumns, 0);
  }
}

void DepthwiseColumns::runRow(int64_t index) const {
  eachBlock([&](const Block &block, int64_t at) { runBlock(block, at, index); });
}

void DepthwiseColumns::runBlock(const Block &block, int64_t at, int64_t index) const {
  constexpr int64_t kMostLines = 5;
  int64_t o1 = index % conv.out[1], image = index / conv.out[1], column = -conv.pad[2];
  const std::byte *lines[kMostLines];
  int64_t steps[kMostLines];
  for (int64_t k = 0; k < conv.kernel[1]; ++k) {
    int64_t i1 = o1 * conv.stride[1] - conv.pad[1] + k * conv.dilation[1];
    bool isInside = i1 >= 0 && i1 < conv.in[1];
    steps[k] = isInside ? conv.inChannels : 0;
    lines[k] = isInside
                   ? call.in[0].as<std::byte>() +
                         ((image * conv.in[1] + i1) * conv.in[2] + column) * conv.inChannels + block.channel
                   : padding;
  }
  SumsResult results[4];
  int64_t named = result.elementBytes() == 1 ? kIntegerColumns : block.channels;
  for (int64_t j = 0; j < named; j += kIntegerColumns)
    results[j / kIntegerColumns] = result.result(
        columns[(at + j) / kIntegerColumns], conv.out[2],
        result.at(index * conv.out[2] * conv.outChannels + block.channel + j, conv.outChannels));
  ops.columns({lines, steps, padding, column, conv.in[2], conv.kernel[2], conv.stride[2], conv.out[2],
               block.channels, isSigned, weights + at * weightBytes(conv), start + at, scale + at,
               offset + at, results});
}

} // namespace dspark
