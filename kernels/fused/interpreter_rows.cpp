// Runs a fused program block by block: each instruction is one SIMD loop over a block of 512 elements, and
// the values in between stay in the L1 cache. Values that are the same for the whole block are computed once.
#include "kernels/elementwise/float_loops.h"
#include "kernels/fused/loops.h"

namespace dspark {
namespace {

constexpr int64_t kBlock = kGatherBlock;

struct InterpreterState {
  FusedLoops loops;
  const FloatLoops *table;
  int32_t slotCount;
  uint8_t slots[kMaxFusedInstructions];
};

/// One value of the current block.
struct Value {
  const float *data;
  bool isScalar;
};

/// The interpreter of one tile range: buffers in the thread's scratch, and the values of the current block.
class Interpreter {
public:
  Interpreter(const KernelCall &call, const InterpreterState &state, std::byte *scratch)
      : call(call), state(state), table(*state.table), program(call.attrs.ints("program")),
        params(call.attrs.floats("params")), results(call.attrs.ints("results")),
        buffers(reinterpret_cast<float *>(scratch)) {
    for (size_t k = 0; k < call.in.size(); ++k) {
      state.loops.strides(int(k), strides[k]);
      const TensorView &x = call.in[k];
      readers[k] = BlockReader(x.data, size_t(dtypeBits(x.type)) / 8, state.loops.dims, strides[k],
                               state.loops.rank, buffer(inputBuffer(k)));
    }
  }

  void run(int64_t begin, int64_t end) {
    for (int64_t n; begin < end; begin += n) {
      n = blockLength(begin, end, state.loops.dims[state.loops.rank - 1], kBlock);
      runBlock(begin, n);
    }
  }

  /// Buffers: one per slot, two per input (as it was read, and as f32), three for the operands of a select.
  static size_t bufferCount(int slots, size_t inputs) { return size_t(slots) + 2 * inputs + 3; }

private:
  float *buffer(size_t index) const { return buffers + index * kBlock; }
  size_t inputBuffer(size_t k) const { return size_t(state.slotCount) + 2 * k; }
  size_t selectBuffer(size_t k) const { return inputBuffer(call.in.size()) + k; }

  void readInput(size_t k, int64_t begin, int64_t n) {
    BlockOperand block = readers[k].read(begin, n);
    if (call.in[k].type == DType::Bool) {
      float *widened = buffer(inputBuffer(k) + 1);
      table.boolToFloat(static_cast<const uint8_t *>(block.data), widened, block.isScalar ? 1 : n);
      block.data = widened;
    }
    values[k] = {static_cast<const float *>(block.data), block.isScalar};
  }

  const float *spread(const Value &value, int64_t n, size_t k) {
    if (!value.isScalar)
      return value.data;
    float *copy = buffer(selectBuffer(k));
    std::fill_n(copy, n, *value.data);
    return copy;
  }

  Value runInstruction(size_t i, int64_t n) {
    const int64_t *words = &program[i * kFusedStride];
    auto category = FusedCategory(words[0]);
    auto kind = size_t(words[1]);
    float alpha = float(params[2 * i]), beta = float(params[2 * i + 1]);
    float *y = buffer(state.slots[i]);
    int operands = FusedProgram::operandCount(category);
    const Value a = operands > 0 ? values[words[2]] : Value{}, b = operands > 1 ? values[words[3]] : Value{};
    switch (category) {
    case FusedCategory::Unary:
      table.unary[kind](a.data, y, a.isScalar ? 1 : n, alpha, beta);
      return {y, a.isScalar};
    case FusedCategory::Clip:
      table.clip(a.data, y, a.isScalar ? 1 : n, alpha, beta);
      return {y, a.isScalar};
    case FusedCategory::Binary:
      return runPair(table.binary[kind], a, b, y, n);
    case FusedCategory::Compare:
      return runPair(table.compareAsFloat[kind], a, b, y, n);
    case FusedCategory::Select: {
      const Value c = values[words[4]];
      table.select(spread(a, n, 0), spread(b, n, 1), spread(c, n, 2), y, n);
      return {y, false};
    }
    case FusedCategory::Constant:
      *y = alpha;
      return {y, true};
    }
    return {y, true};
  }

  static Value runPair(const BinaryLoop *forms, const Value &a, const Value &b, float *y, int64_t n) {
    bool both = a.isScalar && b.isScalar;
    OperandForm form = both ? kBothBlocks : a.isScalar ? kScalarA : b.isScalar ? kScalarB : kBothBlocks;
    forms[form](a.data, b.data, y, both ? 1 : n);
    return {y, both};
  }

  void runBlock(int64_t begin, int64_t n) {
    size_t inputs = call.in.size(), count = program.size() / kFusedStride;
    for (size_t k = 0; k < inputs; ++k)
      readInput(k, begin, n);
    for (size_t i = 0; i < count; ++i)
      values[inputs + i] = runInstruction(i, n);
    for (size_t r = 0; r < results.size(); ++r) {
      const Value &value = values[results[r]];
      float *y = call.out[r].as<float>() + begin;
      if (value.isScalar)
        std::fill_n(y, n, *value.data);
      else if (value.data != y)
        std::copy_n(value.data, n, y);
    }
  }

  const KernelCall &call;
  const InterpreterState &state;
  const FloatLoops &table;
  std::span<const int64_t> program;
  std::span<const double> params;
  std::span<const int64_t> results;
  float *buffers;
  int64_t strides[kMaxFusedOperands][kMaxRank];
  BlockReader readers[kMaxFusedOperands];
  Value values[kMaxFusedOperands + kMaxFusedInstructions];
};

template <Isa isa> void prepare(const KernelCall &call, KernelWork &work) {
  auto &state = work.make<InterpreterState>();
  std::string error;
  // The shape function has accepted the program.
  std::optional<FusedProgram> program =
      FusedProgram::parse(call.attrs, call.in.size(), call.out.size(), error);
  state.loops.collapse(call);
  state.table = &floatLoops(isa);
  state.slotCount = program->slotCount;
  std::copy(program->slots.begin(), program->slots.end(), state.slots);
  prepareElementwise(call, work, double(program->code.size()));
  work.scratchPerThread =
      Interpreter::bufferCount(program->slotCount, call.in.size()) * kBlock * sizeof(float);
}

void run(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<InterpreterState>();
  Interpreter interpreter(call, state, part.scratch);
  interpreter.run(int64_t(part.begin) * kElementwiseTile,
                  std::min(state.loops.total, int64_t(part.end) * kElementwiseTile));
}

} // namespace

std::span<const Kernel> fusedInterpreterRows() {
  static const Kernel rows[] = {
      {"fused", "fused_interpreter_avx512", Isa::Avx512, nullptr, prepare<Isa::Avx512>, run},
      {"fused", "fused_interpreter_avx2", Isa::Avx2, nullptr, prepare<Isa::Avx2>, run},
      {"fused", "fused_interpreter", Isa::Baseline, nullptr, prepare<Isa::Baseline>, run},
  };
  return rows;
}

} // namespace dspark
