// Views are executed by the runtime without a kernel; their rows copy, for callers whose result must be a
// tensor of its own (an input that is also an output). Shape and size write numbers the runtime mostly knows.
#include "kernels/common/byte_tiles.h"
#include "kernels/movement/rows.h"
#include "kernels/movement/strided_copy.h"
#include <algorithm>

namespace dspark::movement {
namespace {

bool acceptsView(const KernelCall &call) { return dtypeBits(call.in[0].type) > 0; }

void prepareView(const KernelCall &call, KernelWork &work) {
  int64_t bytes = dtypeBytes(call.in[0].type, call.in[0].elements());
  work.tiles[0] = tilesForBytes(bytes);
  work.bytes = double(bytes) * 2;
}

void runView(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  RowRange range(dtypeBytes(call.in[0].type, call.in[0].elements()), work.tiles[0], part);
  char *to = call.out[0].as<char>();
  const char *from = call.in[0].as<const char>();
  if (to != from && range.end > range.begin)
    __builtin_memcpy(to + range.begin, from + range.begin, size_t(range.end - range.begin));
}

void prepareNumbers(const KernelCall &, KernelWork &) {}

void runShape(const KernelCall &call, const KernelWork &, const KernelPart &) {
  const TensorView &x = call.in[0];
  int64_t start = call.attrs.i("start", 0), count = call.out[0].elements();
  start = std::clamp<int64_t>(start < 0 ? start + x.rank : start, 0, x.rank);
  for (int64_t i = 0; i < count; ++i)
    call.out[0].as<int64_t>()[i] = x.dims[start + i];
}

void runSize(const KernelCall &call, const KernelWork &, const KernelPart &) {
  *call.out[0].as<int64_t>() = call.in[0].elements();
}

constexpr Kernel kRows[] = {
    {"reshape", "reshape_bytes", Isa::Baseline, acceptsView, prepareView, runView},
    {"squeeze", "squeeze_bytes", Isa::Baseline, acceptsView, prepareView, runView},
    {"unsqueeze", "unsqueeze_bytes", Isa::Baseline, acceptsView, prepareView, runView},
    {"flatten", "flatten_bytes", Isa::Baseline, acceptsView, prepareView, runView},
    {"identity", "identity_bytes", Isa::Baseline, acceptsView, prepareView, runView},
    {"shape", "shape_i64", Isa::Baseline, nullptr, prepareNumbers, runShape},
    {"size", "size_i64", Isa::Baseline, nullptr, prepareNumbers, runSize},
};

} // namespace

std::span<const Kernel> viewKernels() { return kRows; }

} // namespace dspark::movement
