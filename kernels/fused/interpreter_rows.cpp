// Runs a fused program without reductions block by block (interpreter.h).
#include "kernels/fused/interpreter.h"

namespace dspark {
namespace {

struct InterpreterState {
  FusedLoops loops;
  const FloatLoops *table;
  int32_t slotCount;
  uint8_t slots[kMaxFusedInstructions];
};

bool accepts(const KernelCall &call) { return !reducesRows(call); }

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
      FusedBlocks::bufferCount(program->slotCount, call.in.size()) * kFusedBlock * sizeof(float);
}

void runBlock(FusedBlocks &blocks, const InterpreterState &state, int64_t begin, int64_t n) {
  const KernelCall &call = blocks.call;
  size_t inputs = call.in.size(), count = blocks.instructions();
  std::span<const int64_t> results = call.attrs.ints("results");
  for (size_t k = 0; k < inputs; ++k)
    blocks.readInput(k, begin, n);
  for (size_t i = 0; i < count; ++i)
    blocks.values[inputs + i] = blocks.run(i, n, blocks.buffer(state.slots[i]));
  for (size_t r = 0; r < results.size(); ++r)
    blocks.write(blocks.values[results[r]], call.out[r].as<float>() + begin, n);
}

void run(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<InterpreterState>();
  FusedBlocks blocks(call, state.loops, *state.table, state.slotCount, part.scratch);
  int64_t begin = int64_t(part.begin) * kElementwiseTile,
          end = std::min(state.loops.total, int64_t(part.end) * kElementwiseTile);
  for (int64_t n; begin < end; begin += n) {
    n = blockLength(begin, end, state.loops.dims[state.loops.rank - 1], kFusedBlock);
    runBlock(blocks, state, begin, n);
  }
}

} // namespace

std::span<const Kernel> fusedInterpreterRows() {
  static const Kernel rows[] = {
      {"fused", "fused_interpreter_avx512", Isa::Avx512, accepts, prepare<Isa::Avx512>, run},
      {"fused", "fused_interpreter_avx2", Isa::Avx2, accepts, prepare<Isa::Avx2>, run},
      {"fused", "fused_interpreter", Isa::Baseline, accepts, prepare<Isa::Baseline>, run},
  };
  return rows;
}

} // namespace dspark
