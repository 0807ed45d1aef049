// Runs a fused program with reductions row by row, each row in passes (passes.h), each pass block by block
// (interpreter.h). Folds take the order that program.h fixes.
#include "kernels/fused/interpreter.h"
#include "kernels/fused/lane_folds.h"
#include "kernels/fused/passes.h"

namespace dspark {
namespace {

struct RowState {
  FusedLoops loops;
  const FloatLoops *table;
  const LaneFolds *folds;
  int64_t rows, length, rowsPerTile;
  int32_t slotCount, reductions;
  uint8_t slots[kMaxFusedInstructions];
};

/// The program of a call in memory of its own, as running must not allocate.
struct Code {
  explicit Code(const KernelCall &call) {
    std::span<const int64_t> words = call.attrs.ints("program"), shapeCodes = call.attrs.ints("shapes");
    count = words.size() / kFusedStride;
    for (size_t i = 0; i < count; ++i) {
      const int64_t *w = &words[i * kFusedStride];
      code[i] = {FusedCategory(w[0]), uint8_t(w[1]), int(w[2]), int(w[3]), int(w[4]), 0, 0};
    }
    for (int64_t result : call.attrs.ints("results"))
      results[resultCount++] = int(result);
    for (size_t r = 0; r < resultCount; ++r)
      shapes[r] = shapeCodes.empty() ? FusedShape::Full : FusedShape(shapeCodes[r]);
    for (int64_t value : call.attrs.ints("kept"))
      kept[keptCount++] = int(value);
    inputs = int(call.in.size());
  }
  FusedBody body() const {
    return {inputs, {code, count}, {results, resultCount}, {shapes, resultCount}, {kept, keptCount}};
  }

  int inputs;
  size_t count, resultCount = 0, keptCount = 0;
  FusedInstruction code[kMaxFusedInstructions];
  int results[kMaxFusedOperands], kept[kMaxFusedKept];
  FusedShape shapes[kMaxFusedOperands];
};

uint32_t uniformInputs(const KernelCall &call, const FusedLoops &loops) {
  uint32_t mask = 0;
  for (size_t k = 0; k < call.in.size(); ++k)
    mask |= uint32_t(loops.isUniform(int(k))) << k;
  return mask;
}

/// Scratch: the blocks, two sets of lanes per reduction, the kept rows.
class RowInterpreter {
public:
  RowInterpreter(const KernelCall &call, const RowState &state, std::byte *scratch)
      : state(state), code(call), body(code.body()),
        passes(planPasses(body, uniformInputs(call, state.loops))),
        blocks(call, state.loops, *state.table, state.slotCount, scratch),
        lanes(reinterpret_cast<float *>(scratch) + blockFloats(state, call.in.size())),
        keptRows(lanes + laneFloats(state)) {}

  static size_t scratchFloats(const RowState &state, size_t inputs, size_t kept) {
    return blockFloats(state, inputs) + laneFloats(state) + kept * size_t(fusedKeptStride(state.length));
  }

  void run(int64_t row) {
    for (int pass = 0;; ++pass) {
      runUniform(row, pass);
      if (pass == passes.count)
        break;
      runPass(row, pass);
    }
    for (size_t r = 0; r < body.results.size(); ++r)
      if (body.isReduced(r))
        blocks.call.out[r].as<float>()[row] = *blocks.values[body.results[r]].data;
  }

private:
  static size_t blockFloats(const RowState &state, size_t inputs) {
    return FusedBlocks::bufferCount(state.slotCount, inputs) * kFusedBlock;
  }
  static size_t laneFloats(const RowState &state) { return size_t(state.reductions) * 2 * kMaxFusedLanes; }

  /// The room of kept value v, or null.
  float *keptRow(int v) const {
    for (size_t k = 0; k < body.kept.size(); ++k)
      if (body.kept[k] == v)
        return keptRows + int64_t(k) * fusedKeptStride(state.length);
    return nullptr;
  }

  /// Values that are the same for the whole row and can be computed before `pass`.
  void runUniform(int64_t row, int pass) {
    for (int v = 0; v < body.values(); ++v) {
      if (!passes.isUniform[v] || passes.level[v] != pass)
        continue;
      if (v < body.inputs) {
        blocks.readUniform(size_t(v), row);
        continue;
      }
      size_t i = size_t(v - body.inputs);
      if (body.code[i].category != FusedCategory::Reduce)
        uniform[i] = *blocks.run(i, 1, &uniform[i]).data;
      blocks.values[v] = {&uniform[i], true};
    }
  }

  /// Calls f(instruction, its lanes) for the reductions that fold in `pass`.
  template <typename F> void forFolds(int pass, F f) {
    float *next = lanes;
    for (size_t i = 0; i < body.code.size(); ++i) {
      if (body.code[i].category != FusedCategory::Reduce)
        continue;
      if (passes.level[size_t(body.inputs) + i] == pass + 1)
        f(i, next);
      next += 2 * kMaxFusedLanes;
    }
  }

  void runPass(int64_t row, int pass) {
    forFolds(pass, [&](size_t i, float *lane) {
      std::fill_n(lane, 2 * kMaxFusedLanes, foldIdentity(FusedReduce(body.code[i].kind)));
    });
    for (int64_t offset = 0; offset < state.length; offset += kFusedBlock) {
      int64_t n = std::min(kFusedBlock, state.length - offset);
      runBlock(row, pass, offset, n);
      bool endsChunk = (offset + n) % kFusedChunk == 0 || offset + n == state.length;
      forFolds(pass, [&](size_t i, float *lane) {
        foldBlock(i, n, lane);
        if (endsChunk)
          state.folds->join[body.code[i].kind](lane + kMaxFusedLanes, lane);
      });
    }
    forFolds(pass, [&](size_t i, float *lane) {
      uniform[i] = state.folds->tree[body.code[i].kind](lane + kMaxFusedLanes);
      if (FusedReduce(body.code[i].kind) == FusedReduce::Mean)
        uniform[i] /= float(state.length);
    });
  }

  void foldBlock(size_t i, int64_t n, float *lane) {
    FusedValue value = blocks.values[body.code[i].a];
    if (value.isScalar) {
      float *copy = blocks.buffer(size_t(state.slotCount) + 2 * size_t(body.inputs));
      std::fill_n(copy, n, *value.data);
      value.data = copy;
    }
    state.folds->fold[body.code[i].kind](value.data, n, lane);
  }

  void runBlock(int64_t row, int pass, int64_t offset, int64_t n) {
    int64_t begin = row * state.length + offset;
    for (int v = 0; v < body.values(); ++v)
      if (passes.runsIn(v, pass))
        blocks.values[v] = valueOf(v, pass, begin, offset, n);
    bool isLast = pass == passes.count - 1;
    for (size_t r = 0; isLast && r < body.results.size(); ++r)
      if (!body.isReduced(r))
        blocks.write(blocks.values[body.results[r]], blocks.call.out[r].as<float>() + begin, n);
  }

  FusedValue valueOf(int v, int pass, int64_t begin, int64_t offset, int64_t n) {
    if (v < body.inputs) {
      blocks.readInput(size_t(v), begin, n);
      return blocks.values[v];
    }
    size_t i = size_t(v - body.inputs);
    float *kept = keptRow(v);
    if (!kept)
      return blocks.run(i, n, blocks.buffer(state.slots[i]));
    if (pass == passes.level[v])
      blocks.write(blocks.run(i, n, kept + offset), kept + offset, n);
    return {kept + offset, false};
  }

  const RowState &state;
  const Code code;
  const FusedBody body;
  const FusedPasses passes;
  FusedBlocks blocks;
  float *lanes, *keptRows;
  float uniform[kMaxFusedInstructions];
};

template <Isa isa> void prepare(const KernelCall &call, KernelWork &work) {
  auto &state = work.make<RowState>();
  std::string error;
  // The shape function has accepted the program.
  std::optional<FusedProgram> program =
      FusedProgram::parse(call.attrs, call.in.size(), call.out.size(), error);
  prepareElementwise(call, work, double(program->code.size()));
  state.loops.collapse(call);
  state.table = &floatLoops(isa);
  state.folds = &laneFolds(isa);
  state.length = state.loops.rowLength();
  state.rows = state.length == 0 && call.attrs.ints("shapes").empty() ? 0 : state.loops.rows();
  state.rowsPerTile = rowsPerTile(state.rows, state.length);
  state.slotCount = program->slotCount;
  for (const FusedInstruction &instruction : program->code)
    state.reductions += instruction.category == FusedCategory::Reduce;
  std::copy(program->slots.begin(), program->slots.end(), state.slots);
  work.flops = double(program->code.size()) * double(state.loops.total);
  work.tiles[0] = uint32_t(std::max<int64_t>(1, (state.rows + state.rowsPerTile - 1) / state.rowsPerTile));
  work.scratchPerThread =
      RowInterpreter::scratchFloats(state, call.in.size(), program->kept.size()) * sizeof(float);
}

void run(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<RowState>();
  RowInterpreter interpreter(call, state, part.scratch);
  int64_t end = std::min(state.rows, int64_t(part.end) * state.rowsPerTile);
  for (int64_t row = int64_t(part.begin) * state.rowsPerTile; row < end; ++row)
    interpreter.run(row);
}

} // namespace

std::span<const Kernel> fusedRowInterpreterRows() {
  static const Kernel rows[] = {
      {"fused", "fused_rows_avx512", Isa::Avx512, reducesRows, prepare<Isa::Avx512>, run},
      {"fused", "fused_rows_avx2", Isa::Avx2, reducesRows, prepare<Isa::Avx2>, run},
      {"fused", "fused_rows", Isa::Baseline, reducesRows, prepare<Isa::Baseline>, run},
      {"fused_reduce", "fused_reduce_avx512", Isa::Avx512, nullptr, prepare<Isa::Avx512>, run},
      {"fused_reduce", "fused_reduce_avx2", Isa::Avx2, nullptr, prepare<Isa::Avx2>, run},
      {"fused_reduce", "fused_reduce", Isa::Baseline, nullptr, prepare<Isa::Baseline>, run},
  };
  return rows;
}

} // namespace dspark
