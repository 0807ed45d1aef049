// Scatters: phase 0 copies the tensor (nothing, where it is updated in place), phase 1 writes the updates in
// their order, so that duplicates resolve the same way every time. An update whose index lies outside the
// tensor is skipped.
#include "kernels/common/byte_tiles.h"
#include "kernels/common/operand.h"
#include "kernels/index/rows.h"
#include "kernels/movement/strided_copy.h"

namespace dspark::index_ops {
namespace {

using movement::copyRun;
using movement::dispatchBytes;

enum class Reduction : uint8_t { None, Add, Mul, Max, Min };

struct ScatterState {
  int32_t axis;
  Reduction reduction;
};

Reduction reductionOf(const KernelCall &call) {
  std::string_view name = call.attrs.s("reduction", "none");
  bool isBool = call.in[0].type == DType::Bool; // whose sum is "or", whose product is "and"
  return name == "none"  ? Reduction::None
         : name == "add" ? (isBool ? Reduction::Max : Reduction::Add)
         : name == "mul" ? (isBool ? Reduction::Min : Reduction::Mul)
         : name == "max" ? Reduction::Max
                         : Reduction::Min;
}

template <typename T> void reduceInto(T &to, T value, Reduction reduction) {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, Accumulator<T>>;
  switch (reduction) {
  case Reduction::None:
    to = value;
    return;
  case Reduction::Add:
    to = T(Wide(to) + Wide(value));
    return;
  case Reduction::Mul:
    to = T(Wide(to) * Wide(value));
    return;
  case Reduction::Max:
    to = !(to > value) && to == to ? value : to;
    return;
  case Reduction::Min:
    to = !(to < value) && to == to ? value : to;
    return;
  }
}

bool acceptsScatter(const KernelCall &call) {
  if (!isIndexType(call.in[1].type) || dtypeBits(call.in[0].type) < 8)
    return false;
  return call.attrs.s("reduction", "none") == "none" || isPlainNumber(call.in[0].type);
}

void prepareCopy(const KernelCall &call, KernelWork &work) {
  int64_t bytes = dtypeBytes(call.out[0].type, call.out[0].elements());
  work.phases = 2;
  work.tiles[0] = tilesForBytes(bytes);
  work.bytes = double(bytes) * 2;
}

void runCopy(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  RowRange range(dtypeBytes(call.out[0].type, call.out[0].elements()), work.tiles[0], part);
  char *to = call.out[0].as<char>();
  const char *from = call.in[0].as<const char>();
  if (to != from && range.end > range.begin)
    __builtin_memcpy(to + range.begin, from + range.begin, size_t(range.end - range.begin));
}

// Calls f.operator()<T>() for the element type where a reduction computes, else for one of the same size.
template <typename F> void dispatchUpdate(DType type, Reduction reduction, F f) {
  if (reduction == Reduction::None)
    dispatchBytes(dtypeBits(type) / 8, f);
  else
    dispatchNumber(type, f);
}

// --- scatter_elements: updates have the indices' dims. Rows with different first coordinates never meet,
// unless that is the axis. ---

void prepareElements(const KernelCall &call, KernelWork &work) {
  prepareCopy(call, work);
  ScatterState &s = work.make<ScatterState>();
  int64_t axis = call.attrs.i("axis", 0);
  s.axis = int32_t(axis < 0 ? axis + call.in[0].rank : axis);
  s.reduction = reductionOf(call);
  int64_t bytes = dtypeBytes(call.in[1].type, call.in[1].elements());
  if (s.axis > 0)
    work.tiles[1] = uint32_t(std::clamp<int64_t>(call.in[1].dims[0], 1, tilesForBytes(bytes)));
}

template <typename T> void scatterRow(const KernelCall &call, const ScatterState &s, int64_t row) {
  const TensorView &y = call.out[0], &indices = call.in[1];
  int last = y.rank - 1;
  int64_t n = indices.dims[last], base = 0, stride = 1, axisStride = 1, rest = row;
  for (int i = last; i >= 0; --i) {
    int64_t at = i == last || i == s.axis ? 0 : rest % indices.dims[i];
    rest = i == last ? rest : rest / indices.dims[i];
    base += at * stride;
    axisStride = i == s.axis ? stride : axisStride;
    stride *= y.dims[i];
  }
  T *to = y.as<T>() + base;
  for (int64_t j = 0; j < n; ++j) {
    int64_t index = intAt(indices, row * n + j);
    index += index < 0 ? y.dims[s.axis] : 0;
    if (index < 0 || index >= y.dims[s.axis])
      continue;
    T &cell = to[index * axisStride + (s.axis == last ? 0 : j)];
    T update = call.in[2].as<const T>()[row * n + j];
    if constexpr (std::is_same_v<T, movement::Wide>)
      cell = update;
    else
      reduceInto(cell, update, s.reduction);
  }
}

void runElements(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  if (part.phase == 0)
    return runCopy(call, work, part);
  const ScatterState &s = work.get<ScatterState>();
  const TensorView &indices = call.in[1];
  if (indices.elements() == 0)
    return;
  int64_t rowsPerFirst = indices.rank > 1 ? indices.elements(1, indices.rank - 1) : 1;
  RowRange range(indices.rank > 1 ? indices.dims[0] : 1, work.tiles[1], part);
  dispatchUpdate(call.in[0].type, s.reduction, [&]<typename T>() {
    for (int64_t row = range.begin * rowsPerFirst; row < range.end * rowsPerFirst; ++row)
      scatterRow<T>(call, s, row);
  });
}

// --- scatter_nd ---

void prepareNd(const KernelCall &call, KernelWork &work) {
  prepareCopy(call, work);
  work.make<ScatterState>().reduction = reductionOf(call);
}

void runNd(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  if (part.phase == 0)
    return runCopy(call, work, part);
  const TensorView &y = call.out[0], &indices = call.in[1];
  Reduction reduction = work.get<ScatterState>().reduction;
  int64_t depth = indices.dims[indices.rank - 1], count = indices.elements(0, indices.rank - 1);
  int64_t inner = y.elements(int(depth), y.rank), bytes = dtypeBits(y.type) / 8;
  for (int64_t row = 0; row < count; ++row) {
    int64_t slice = 0;
    bool isInside = true;
    for (int64_t k = 0; k < depth; ++k) {
      int64_t dim = y.dims[k], index = intAt(indices, row * depth + k);
      index += index < 0 ? dim : 0;
      isInside &= index >= 0 && index < dim;
      slice = slice * dim + (isInside ? index : 0);
    }
    if (!isInside)
      continue;
    if (reduction == Reduction::None) {
      copyRun(y.as<char>() + slice * inner * bytes, call.in[2].as<const char>() + row * inner * bytes,
              inner * bytes);
      continue;
    }
    dispatchNumber(y.type, [&]<typename T>() {
      for (int64_t i = 0; i < inner; ++i)
        reduceInto(y.as<T>()[slice * inner + i], call.in[2].as<const T>()[row * inner + i], reduction);
    });
  }
}

// --- tensor_scatter: writes `update` into the cache along the axis, from write_indices[batch] on ---

bool acceptsCache(const KernelCall &call) { return dtypeBits(call.in[0].type) >= 8; }

void runCache(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  if (part.phase == 0)
    return runCopy(call, work, part);
  const TensorView &y = call.out[0], &update = call.in[1];
  int64_t axis = call.attrs.i("axis", -2);
  axis += axis < 0 ? y.rank : 0;
  int64_t size = y.dims[axis];
  bool circular = call.attrs.s("mode", "linear") == "circular";
  int64_t bytes = y.elements(int(axis) + 1, y.rank) * (dtypeBits(y.type) / 8);
  int64_t outer = y.elements(0, int(axis)), steps = update.dims[axis];
  if (bytes == 0 || size == 0)
    return;
  for (int64_t o = 0; o < outer; ++o) {
    int64_t start = call.has(2) ? intAt(call.in[2], o / (outer / y.dims[0])) : 0;
    if (circular)
      start = (start % size + size) % size;
    if (start < 0)
      continue;
    for (int64_t t = 0; t < steps && (circular || t < size - start); ++t)
      copyRun(y.as<char>() + (o * size + (start + t) % size) * bytes,
              update.as<const char>() + (o * steps + t) * bytes, bytes);
  }
}

constexpr Kernel kRows[] = {
    {"scatter_elements", "scatter_elements_any", Isa::Baseline, acceptsScatter, prepareElements, runElements},
    {"scatter_nd", "scatter_nd_any", Isa::Baseline, acceptsScatter, prepareNd, runNd},
    {"tensor_scatter", "tensor_scatter_bytes", Isa::Baseline, acceptsCache, prepareCopy, runCache},
};

} // namespace

std::span<const Kernel> scatterKernels() { return kRows; }

} // namespace dspark::index_ops
