// What the interpreters of programs without and with reductions share: reading a block of an input, and
// running one instruction on a block. Each instruction is one SIMD loop over a block of 512 elements, and the
// values in between stay in the L1 cache. Values that are the same for the whole block are computed once.
#pragma once
#include "kernels/elementwise/float_loops.h"
#include "kernels/fused/loops.h"

namespace dspark {

inline constexpr int64_t kFusedBlock = kGatherBlock;

/// One value of the current block.
struct FusedValue {
  const float *data;
  bool isScalar;
};

/// The blocks of one tile range; buffers lie in the thread's scratch.
class FusedBlocks {
public:
  FusedBlocks(const KernelCall &call, const FusedLoops &loops, const FloatLoops &table, int slots,
              std::byte *scratch)
      : call(call), program(call.attrs.ints("program")), loops(loops), table(table),
        params(call.attrs.floats("params")), slots(slots), buffers(reinterpret_cast<float *>(scratch)) {
    for (size_t k = 0; k < call.in.size(); ++k) {
      loops.strides(int(k), strides[k]);
      const TensorView &x = call.in[k];
      readers[k] = BlockReader(x.data, size_t(dtypeBits(x.type)) / 8, loops.dims, strides[k], loops.rank,
                               buffer(inputBuffer(k)));
    }
  }

  /// Buffers: one per slot, two per input (as it was read, and as f32), three for the operands of a select.
  static size_t bufferCount(int slots, size_t inputs) { return size_t(slots) + 2 * inputs + 3; }

  size_t instructions() const { return program.size() / kFusedStride; }
  float *buffer(size_t index) const { return buffers + index * kFusedBlock; }

  /// Elements [begin, begin + n) of the full shape of input k.
  void readInput(size_t k, int64_t begin, int64_t n) {
    BlockOperand block = readers[k].read(begin, n);
    if (call.in[k].type == DType::Bool) {
      float *widened = buffer(inputBuffer(k) + 1);
      table.boolToFloat(static_cast<const uint8_t *>(block.data), widened, block.isScalar ? 1 : n);
      block.data = widened;
    }
    values[k] = {static_cast<const float *>(block.data), block.isScalar};
  }

  /// The element that input k has for a row.
  void readUniform(size_t k, int64_t row) {
    int64_t offset = 0;
    for (int d = loops.rank - loops.rowRank; d-- > 0; row /= loops.dims[d])
      offset += row % loops.dims[d] * strides[k][d];
    float *value = buffer(inputBuffer(k) + 1);
    *value = call.in[k].type == DType::Bool ? float(call.in[k].as<uint8_t>()[offset] != 0)
                                            : call.in[k].as<float>()[offset];
    values[k] = {value, true};
  }

  /// Instruction i on a block of n; its result goes to y. Not a reduction.
  FusedValue run(size_t i, int64_t n, float *y);

  void write(const FusedValue &value, float *y, int64_t n) const {
    if (value.isScalar)
      std::fill_n(y, n, *value.data);
    else if (value.data != y)
      std::copy_n(value.data, n, y);
  }

  FusedValue values[kMaxFusedValues]; // of the current block
  const KernelCall &call;
  const std::span<const int64_t> program;

private:
  size_t inputBuffer(size_t k) const { return size_t(slots) + 2 * k; }
  const float *spread(const FusedValue &value, int64_t n, size_t k);
  static FusedValue runPair(const BinaryLoop *forms, const FusedValue &a, const FusedValue &b, float *y,
                            int64_t n);

  const FusedLoops &loops;
  const FloatLoops &table;
  std::span<const double> params;
  int slots;
  float *buffers;
  int64_t strides[kMaxFusedOperands][kMaxRank];
  BlockReader readers[kMaxFusedOperands];
};

} // namespace dspark
