#include "kernels/common/call_contract.h"
#include "kernels/common/contract.h"

#ifndef NDEBUG
namespace dspark {
namespace {

void expectTensor(const TensorView &t) {
  if (!t.present())
    return;
  DSPARK_EXPECTS(t.rank >= 0 && t.rank <= kMaxRank);
  DSPARK_EXPECTS(isReadable(t.dims, t.rank));
  for (int i = 0; i < t.rank; ++i)
    DSPARK_EXPECTS(t.dims[i] >= 0);
  DSPARK_EXPECTS(isReadable(t.data, t.elements()));
}

// Results do not share memory, or tiles of one would overwrite those of another.
void expectApart(const TensorView &a, const TensorView &b) {
  if (!a.present() || !b.present() || a.elements() == 0 || b.elements() == 0)
    return;
  const auto *x = a.as<const char>(), *y = b.as<const char>();
  DSPARK_EXPECTS(x + dtypeBytes(a.type, a.elements()) <= y || y + dtypeBytes(b.type, b.elements()) <= x);
}

void expectScratch(const std::byte *scratch, size_t bytes) {
  DSPARK_EXPECTS(bytes == 0 || (scratch && reinterpret_cast<uintptr_t>(scratch) % 64 == 0));
}

} // namespace

void expectCall(const Kernel &row, const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  for (const TensorView &t : call.in)
    expectTensor(t);
  for (size_t i = 0; i < call.out.size(); ++i) {
    expectTensor(call.out[i]);
    for (size_t k = 0; k < i; ++k)
      expectApart(call.out[k], call.out[i]);
  }
  DSPARK_EXPECTS(!row.accepts || row.accepts(call));
  DSPARK_EXPECTS(work.phases >= 1 && work.phases <= kMaxPhases && part.phase >= 0 &&
                 part.phase < work.phases);
  DSPARK_EXPECTS(part.begin <= part.end && part.end <= work.tiles[part.phase]);
  expectScratch(part.scratch, work.scratchPerThread);
  expectScratch(part.shared, work.scratchShared);
}

} // namespace dspark
#endif
