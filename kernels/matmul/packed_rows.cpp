// packed_rows: rows of a packed matrix by index, as f32. Tokens look up their embeddings in the weights that
// also project onto the vocabulary.
#include "kernels/matmul/packed_rows.h"
#include "kernels/common/operand.h"
#include "kernels/matmul/packed.h"
#include <algorithm>

namespace dspark {
namespace {

struct State {
  PackedFormat format;
  int64_t n, k, panelBytes;
};

} // namespace

void preparePackedRows(const KernelCall &call, KernelWork &work) {
  State &state = work.make<State>();
  state.format = *PackedFormat::named(call.attrs.s("packed", ""));
  state.n = call.in[1].dim(0);
  state.k = call.in[1].dim(1);
  state.panelBytes = state.format.panelBytes(state.k);
  int64_t rows = call.in[0].elements();
  work.tiles[0] = uint32_t(std::clamp<int64_t>(rows * state.k >> 14, 1, std::clamp<int64_t>(rows, 1, 64)));
  work.bytes = double(rows) * double(state.panelBytes + state.k * int64_t(sizeof(float)));
}

template <Isa isa>
void runPackedRows(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  int64_t rows = call.in[0].elements(), tiles = work.tiles[0];
  const uint8_t *panels = call.in[1].as<uint8_t>();
  for (int64_t row = rows * part.begin / tiles; row < rows * part.end / tiles; ++row) {
    int64_t index = intAt(call.in[0], row);
    index += index < 0 ? state.n : 0;
    float *y = call.out[0].as<float>() + row * state.k;
    if (index < 0 || index >= state.n)
      std::fill_n(y, state.k, 0.0f); // as gather does
    else
      packedOps(isa).column(state.format, panels + index / kPackedColumns * state.panelBytes,
                            index % kPackedColumns, state.k, y);
  }
}

template void runPackedRows<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runPackedRows<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runPackedRows<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
