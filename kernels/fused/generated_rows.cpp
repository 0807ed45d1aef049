// Calls the code that the compiler generated for a fused region, where the shapes at hand have the inner
// strides that it assumes; other shapes are interpreted. Walks the outer dims, two loops being the code's
// own. A program with reductions gets whole rows.
#include "kernels/fused/loops.h"

namespace dspark {
namespace {

struct GeneratedState {
  FusedLoops loops;
  int64_t rows;        // of dims[rank - 1] elements
  int64_t rowsPerTile; // short rows: a tile is so many of them
  int64_t chunks;      // long rows: a tile is one of so many chunks of a row; 1 if rows are reduced
};

bool accepts(const KernelCall &call) {
  size_t operands = call.in.size() + call.out.size();
  std::span<const int64_t> inner = call.attrs.ints("inner");
  if (!call.code || inner.size() != operands)
    return false;
  FusedLoops loops;
  loops.collapse(call);
  if (loops.total == 1) // no stride is ever used
    return true;
  if (loops.rowRank > 0 && loops.dims[loops.rank - 1] <= 1)
    return loops.total > 0; // rows of one element
  if (loops.rowRank > 1 || (loops.rowRank == 1 && loops.total == 0))
    return false;
  for (size_t k = 0; k < operands; ++k)
    if (inner[k] != loops.innerStride(int(k)))
      return false;
  return true;
}

void prepare(const KernelCall &call, KernelWork &work) {
  prepareElementwise(call, work, double(call.attrs.ints("program").size()) / kFusedStride);
  auto &state = work.make<GeneratedState>();
  state.loops.collapse(call);
  int64_t length = state.loops.dims[state.loops.rank - 1];
  state.rows = 1;
  for (int i = 0; i + 1 < state.loops.rank; ++i)
    state.rows *= state.loops.dims[i];
  state.rowsPerTile = rowsPerTile(state.rows, length);
  state.chunks = 1;
  if (state.loops.rowRank == 0)
    state.chunks = std::max<int64_t>(1, (length + kElementwiseTile - 1) / kElementwiseTile);
  work.scratchPerThread = call.attrs.ints("kept").size() * size_t(fusedKeptStride(length)) * sizeof(float);
  work.flops = double(call.attrs.ints("program").size()) / kFusedStride * double(state.loops.total);
  int64_t tiles =
      state.chunks > 1 ? state.rows * state.chunks : (state.rows + state.rowsPerTile - 1) / state.rowsPerTile;
  work.tiles[0] = uint32_t(std::max<int64_t>(1, tiles));
}

class Walker {
public:
  Walker(const KernelCall &call, const FusedLoops &loops, std::byte *scratch)
      : loops(loops), scratch(scratch), function(reinterpret_cast<FusedFn>(const_cast<void *>(call.code))),
        count(call.in.size() + call.out.size()), params(call.attrs.floats("params").data()) {
    for (size_t k = 0; k < count; ++k) {
      const TensorView &view = k < call.in.size() ? call.in[k] : call.out[k - call.in.size()];
      bases[k] = view.as<std::byte>();
      bytes[k] = dtypeBits(view.type) / 8;
      loops.strides(int(k), strides[k]);
      rowStrides[k] = loops.rank > 1 ? strides[k][loops.rank - 2] : 0;
    }
  }

  /// Elements [first, first + length) of `rows` rows that start at `row` and lie in one run of the second
  /// loop.
  void run(int64_t row, int64_t rows, int64_t first, int64_t length) const {
    void *pointers[kMaxFusedOperands + 2];
    for (size_t k = 0; k < count; ++k) {
      int64_t offset = first * strides[k][loops.rank - 1], rest = row;
      for (int i = loops.rank - 1; i-- > 0; rest /= loops.dims[i])
        offset += rest % loops.dims[i] * strides[k][i];
      pointers[k] = bases[k] + offset * bytes[k];
    }
    pointers[count] = const_cast<double *>(params);
    pointers[count + 1] = scratch;
    function(pointers, rows, length, rowStrides);
  }

private:
  const FusedLoops &loops;
  std::byte *scratch;
  FusedFn function;
  size_t count;
  const double *params;
  std::byte *bases[kMaxFusedOperands];
  int64_t bytes[kMaxFusedOperands], rowStrides[kMaxFusedOperands];
  int64_t strides[kMaxFusedOperands][kMaxRank];
};

void run(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<GeneratedState>();
  Walker walker(call, state.loops, part.scratch);
  int64_t length = state.loops.dims[state.loops.rank - 1];
  if (state.chunks > 1) {
    for (int64_t tile = part.begin; tile < int64_t(part.end); ++tile) {
      int64_t first = tile % state.chunks * kElementwiseTile;
      walker.run(tile / state.chunks, 1, first, std::min(kElementwiseTile, length - first));
    }
    return;
  }
  int64_t run = state.loops.rank > 1 ? state.loops.dims[state.loops.rank - 2] : 1;
  int64_t end = std::min(state.rows, int64_t(part.end) * state.rowsPerTile);
  for (int64_t row = int64_t(part.begin) * state.rowsPerTile, rows; row < end; row += rows) {
    rows = std::min(end - row, run - row % run);
    walker.run(row, rows, 0, length);
  }
}

} // namespace

std::span<const Kernel> fusedGeneratedRows() {
  // Once per level, so that generated code comes before the interpreter at each; the runtime binds the code
  // of the level that it runs at.
  static const Kernel rows[] = {
      {"fused", "fused_generated_avx512", Isa::Avx512, accepts, prepare, run},
      {"fused", "fused_generated_avx2", Isa::Avx2, accepts, prepare, run},
      {"fused", "fused_generated", Isa::Baseline, accepts, prepare, run},
      {"fused_reduce", "fused_reduce_generated_avx512", Isa::Avx512, accepts, prepare, run},
      {"fused_reduce", "fused_reduce_generated_avx2", Isa::Avx2, accepts, prepare, run},
      {"fused_reduce", "fused_reduce_generated", Isa::Baseline, accepts, prepare, run},
  };
  return rows;
}

} // namespace dspark
